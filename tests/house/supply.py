"""`make check-supply`: dependencies without a lock, without a licence, or with a release that was yanked.

What was yanked says the registry that pip and uv are configured with. If it does not answer, that is a problem, too:
whoever has none passes --offline, and the rest is checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-serve.lock", "requirements-dev.lock")
"""Each package with its hashes."""
LOCKS_OF_ADAPTERS = "tests/adapters/requirements-*.txt"

NO_LICENCE = frozenset({"", "UNKNOWN", "NONE", "NOASSERTION"})

_PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
_REQUIRED = re.compile(r"[A-Za-z0-9][\w.-]*")
_YANKED = re.compile(r"^warning: `([^`]+)` is yanked(.*)$", re.MULTILINE)


class Pin(NamedTuple):
    name: str
    version: str
    has_hash: bool


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_in(lock: str) -> Iterator[Pin]:
    """Of a file of requirements; a line that pins nothing is none."""
    for entry in re.split(r"\n(?=\S)", lock):
        if found := _PINNED.match(entry):
            yield Pin(canonical(found[1]), found[2], "--hash=" in entry)


def unlocked(project: Mapping[str, object], locks: Mapping[str, str]) -> Iterator[str]:
    """What `pyproject.toml` requires and no lock pins, and what a lock does not pin by a hash.

    Each group of dependencies has to stand whole in one lock: what is required at run time in the first one.
    """
    pinned = {name: {pin.name for pin in pins_in(text)} for name, text in locks.items()}
    runtime, extras = project.get("dependencies", []), project.get("optional-dependencies", {})
    assert isinstance(runtime, list)
    assert isinstance(extras, dict)
    everywhere = set[str]().union(*pinned.values())
    groups: list[tuple[str, list[str], set[str]]] = [("dependencies", runtime, next(iter(pinned.values())))]
    groups.extend((extra, required, everywhere) for extra, required in extras.items())
    for group, required, held in groups:
        for each in required:
            name = canonical(_REQUIRED.match(each)[0])  # type: ignore[index]
            if name not in held and name != "reactor-memory":
                yield f"{each} ({group}) stands in no lock: run make lock"
    for lock, text in locks.items():
        yield from (f"{pin.name} has no hash in {lock}" for pin in pins_in(text) if not pin.has_hash)


def without_licence(names: Iterable[str], installed: Iterable[Distribution]) -> Iterator[str]:
    """Those of the packages `names`, installed here, that give no licence: no expression, text, file or classifier."""
    for each in installed:
        name = canonical(each.metadata["Name"] or "")
        if name in set(names) and not _licences(each):
            yield f"{name} {each.version} names no licence"


def _licences(installed: Distribution) -> list[str]:
    told = installed.metadata
    given = [value for key in ("License-Expression", "License", "License-File") for value in told.get_all(key) or []]
    given += [each for each in told.get_all("Classifier") or [] if each.startswith("License ::")]
    return [each for each in given if each.strip().upper() not in NO_LICENCE]


def yanked(lock: Path) -> Iterator[str]:
    """What uv warns of when it looks the pins of a lock up. Raises `OSError` if the registry does not answer."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--no-deps", "--universal", "--python-version", "3.11"]
    done = subprocess.run([*command, str(lock)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip()[-500:])
    yield from (f"{pin} is yanked{reason} in {lock.name}" for pin, reason in _YANKED.findall(done.stderr))


def problems(checkout: Path, installed: Iterable[Distribution], *, is_offline: bool) -> Iterator[str]:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locks = {name: (checkout / name).read_text(encoding="utf-8") for name in LOCKS}
    yield from unlocked(project, locks)
    yield from without_licence({pin.name for text in locks.values() for pin in pins_in(text)}, installed)
    for lock in () if is_offline else (*(checkout / name for name in LOCKS), *sorted(checkout.glob(LOCKS_OF_ADAPTERS))):
        try:
            yield from yanked(lock)
        except OSError as error:
            yield f"the registry did not answer for {lock.name}, so that nobody knows what was yanked: {error}"
            return


def main(arguments: Sequence[str]) -> int:
    found = list(problems(CHECKOUT, distributions(), is_offline="--offline" in arguments))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
