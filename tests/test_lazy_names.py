"""Packages whose names are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import reactor_memory
from reactor_memory import forms
from reactor_memory.core import log
from reactor_memory.lazy_names import modules_of, names_of


@pytest.mark.parametrize("package", [reactor_memory, forms, log], ids=str)
@pytest.mark.parametrize("name", ["nothing", "_private", "__wrapped__"])
def test_what_a_package_has_not_is_no_attribute(package: object, name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        getattr(package, name)


def test_a_module_that_cannot_be_imported_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy_package").mkdir()
    (tmp_path / "lazy_package" / "__init__.py").write_text("")
    (tmp_path / "lazy_package" / "broken.py").write_text("import nowhere_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        modules_of("lazy_package")("broken")
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        names_of("lazy_package", {"Broken": "broken"})("Broken")


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(vars(forms), "read", raising=False)
    assert forms.read is vars(forms)["read"]


def test_importing_a_package_imports_no_module_of_it() -> None:
    told = "import sys, reactor_memory.core.log; print('reactor_memory.core.log.health' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, check=True).stdout == b"False\n"
