"""What `make check-beside` says of packages that were made up for it, in a folder instead of a registry."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.house.beside import Pair, Resolver, held_back


def wheel(folder: Path, name: str, version: str, *requires: str) -> None:
    """A package without content."""
    about = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")


@pytest.fixture
def resolver(tmp_path: Path) -> Resolver:
    """Of a framework whose newest release wants an older driver than its first one."""
    wheel(tmp_path, "driver", "2.9")
    wheel(tmp_path, "driver", "3.1")
    wheel(tmp_path, "framework", "1.0")
    wheel(tmp_path, "framework", "2.0", "driver<3")
    wheel(tmp_path, "wide", "1.0", "driver>=2")
    wheel(tmp_path, "narrow", "1.0", "driver>=3")
    wheel(tmp_path, "exact", "1.0", "driver==1")
    return Resolver("--no-index", "--find-links", str(tmp_path))


def test_a_package_that_takes_both_holds_nothing_back(resolver: Resolver):
    assert held_back(Pair("framework", "wide"), resolver) is None


def test_an_older_framework_is_a_problem_with_its_reason(resolver: Resolver):
    problem = held_back(Pair("framework", "narrow"), resolver)
    assert problem is not None
    assert problem.startswith("framework gets 1.0 beside narrow, alone 2.0:")
    assert "driver<3" in problem
    assert "driver>=3" in problem


def test_no_release_at_all_is_a_problem_too(resolver: Resolver):
    problem = held_back(Pair("framework", "exact"), resolver)
    assert problem is not None
    assert problem.startswith("framework gets no release beside exact")
    assert "driver==1" in problem


def test_a_release_that_is_only_found_later_is_named(resolver: Resolver, tmp_path: Path):
    class Preferring(Resolver):
        def versions(self, *requirements: str) -> dict[str, str]:
            found = super().versions(*requirements)
            return {**found, "framework": "1.0"} if requirements == ("framework", "wide") else found

    preferring = Preferring("--no-index", "--find-links", str(tmp_path))
    problem = held_back(Pair("framework", "wide"), preferring)
    assert problem is not None
    assert "nothing excludes framework==2.0" in problem
