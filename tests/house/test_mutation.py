"""Finding the place of a mutant, and each kind of change; and that the table of mutants fits the source."""

import ast
import shlex
from difflib import ndiff
from pathlib import Path

import pytest

from tests.house.mutation import PYTHON, SQL, Mutant, PlaceError, mutant_of, mutated, read

ROOT = Path(__file__).parents[2]

SOURCE = """
LIMIT = 5_000

class Shelf:
    SIZE: int = 3

    def put(self, book):
        def inner():
            return book
        with lock(), noted(book):
            self.books.add(
                book)
        return inner

    async def get(self, name):
        try:
            found = yield self.find(name)
        except (KeyError, LookupError):
            return None
        return check(found, name) if found and name != "all" else [b for b in self.books if b.name]
"""
OTHER = """
class Box:
    def put(self): ...

def find(name):
    # two of this name, told apart by what is in them
    if name is None: raise ValueError
    yield step("look", name)
"""
QUERIES = """
-- name: find
SELECT * FROM books
WHERE shelf = :shelf
  AND taken IS NULL

-- name: find [postgres]
SELECT * FROM books
WHERE books.taken IS NULL
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    package = tmp_path / "reactor_memory"
    (package / "deep").mkdir(parents=True)
    (package / "shelf.py").write_text(SOURCE)
    (package / "deep" / "other.py").write_text(OTHER)
    (package / "deep" / "more.py").write_text("def find(key):\n    return key + 1\n")
    (package / "deep" / "queries.sql").write_text(QUERIES)
    return tmp_path


def lines_changed(root: Path, at: str, kind: str, what: str, to: str) -> tuple[list[str], list[str]]:
    """The lines that went and those that came, in the text that `ast` writes."""
    file, text = mutated(Mutant("", at, kind, what, to, ""), root)
    before = file.read_text() if kind in SQL else ast.unparse(ast.parse(file.read_text()))
    lines = [line[2:].strip() for line in ndiff(before.splitlines(), text.splitlines()) if line.startswith("- ")]
    return lines, [line[2:].strip() for line in ndiff(before.splitlines(), text.splitlines()) if line.startswith("+ ")]


NOTED = "with lock(), noted(book):"
ANSWER = "return check(found, name) if found and name != 'all' else [b for b in self.books if b.name]"
CHANGES = [
    ("Shelf.put", "drop", "books add", "", "self.books.add(book)", "pass"),
    ("find", "drop", "look", "", "yield step('look', name)", "yield from ()"),
    ("find", "drop", "ValueError", "", "raise ValueError", "pass"),
    ("find", "never", "name", "", "if name is None:", "if False:"),
    ("Shelf.get", "always", "b", "", ANSWER, ANSWER.replace("b.name]", "True]")),
    ("Shelf.get", "never", "found all", "", ANSWER, ANSWER.replace("found and name != 'all'", "False")),
    ("Shelf.get", "leave_out", "all", "", ANSWER, ANSWER.replace(" and name != 'all'", "")),
    ("Shelf.get", "unwrap", "check", "", ANSWER, ANSWER.replace("check(found, name)", "found")),
    ("Shelf.put", "unguard", "lock", "", NOTED, NOTED.replace("lock()", "__import__('contextlib').nullcontext()")),
    ("Shelf.get", "uncaught", "KeyError", "", "except (KeyError, LookupError):", "except FloatingPointError:"),
    ("Shelf.put.inner", "returns", "None", "", "return book", "return None"),
    ("find", "change", "key+1", "key", "return key + 1", "return key"),
    ("LIMIT", "change", "5000", "6000", "LIMIT = 5000", "LIMIT = 6000"),
    ("Shelf.SIZE", "change", "3", "4", "SIZE: int = 3", "SIZE: int = 4"),
    ("find", "fragment", "shelf = :shelf AND", "", "WHERE shelf = :shelf\nAND taken IS NULL", "WHERE  taken IS NULL"),
    ("find [postgres]", "fragment", "IS NULL", "= 1", "WHERE books.taken IS NULL", "WHERE books.taken = 1"),
]


def test_each_change_is_made_at_its_place_only(root: Path) -> None:
    kinds = {kind for _, kind, *_ in CHANGES}
    assert kinds == PYTHON.keys() | SQL
    for at, kind, what, to, went, came in CHANGES:
        assert lines_changed(root, at, kind, what, to) == (went.split("\n"), [came]), (at, kind)


def test_no_place_and_several_places_are_faults(root: Path) -> None:
    faults = [
        ("nothing", "drop", "name"),  # no such function
        ("put", "drop", "add"),  # a method is named with its class
        ("Shelf", "drop", "add"),  # a class is no place
        ("Shelf.put", "drop", "add shelf"),  # all words must be there
        ("Shelf.put", "drop", "book"),  # several statements
        ("Shelf.get", "drop", "return"),  # a keyword is no name
        ("find", "unguard", "name"),  # of two functions of the name none can be changed so
        ("LIMIT", "returns", "5"),
        ("nothing", "fragment", "taken"),
        ("find", "fragment", "given"),
        ("find [postgres]", "fragment", "o"),
    ]
    for at, kind, what in faults:
        with pytest.raises(PlaceError):
            mutated(Mutant("", at, kind, what, "", ""), root)


def test_row_has_a_guard_a_place_tests_and_one_change() -> None:
    for keys in ("at drop tests", "guard at tests", "guard at tests drop never", "guard at tests dorp"):
        with pytest.raises(PlaceError):
            mutant_of(dict.fromkeys(keys.split(), ""))


@pytest.mark.slow
def test_the_place_of_every_mutant_is_found() -> None:
    for mutant in read(ROOT / "tests" / "house" / "mutants.toml"):
        file, text = mutated(mutant, ROOT)
        assert text != file.read_text(encoding="utf-8")
        if file.suffix == ".py":
            compile(text, file, "exec")
        named = [ROOT / argument for argument in shlex.split(mutant.tests) if argument.startswith("tests/")]
        assert named
        assert all(path.exists() for path in named), mutant.tests
