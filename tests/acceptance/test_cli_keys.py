"""`reactor-memory keys`: what an operator sees of the keys of agents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run

CREATE = ("keys", "create", "--client", "bot", "--agent", "travel", "--store", "log.db")


def test_a_key_is_shown_once(run: Run, folder: Path) -> None:
    made = run(*CREATE, "--allow", "read,append")
    assert made.code == 0
    key = made.out.strip()
    assert re.fullmatch(r"rm_\w{8}_\w{38}", key)
    assert "not shown again" in made.err
    for command in (("keys", "list"), ("keys", "list", "--json")):
        listed = run(*command, "--store", "log.db")
        assert key[3:11] in listed.out
        assert key[12:] not in listed.out
    assert key[12:].encode() not in b"".join(path.read_bytes() for path in folder.iterdir())


def test_what_a_key_may_do_is_listed(run: Run) -> None:
    first = run(*CREATE, "--agent", "*", "--allow", "append, read,append", "--expires-in-days", 2, "--json").json
    run(*CREATE, "--allow", "on-behalf-of")
    listed = run("keys", "list", "--store", "log.db", "--json").json
    assert [each["allow"] for each in listed] == [["read", "append"], ["on-behalf-of"]]
    assert listed[0] == {name: value for name, value in first.items() if name != "key"}
    assert listed[0]["agents"] == ["travel", "*"]
    assert listed[0]["expires_at"] - listed[0]["created_at"] == 2 * 86_400 * 1_000_000
    assert listed[1]["expires_at"] is None
    assert [each["state"] for each in listed] == ["in force"] * 2


def test_a_key_is_revoked_once(run: Run) -> None:
    prefix = run(*CREATE, "--allow", "read", "--json").json["prefix"]
    kept = run(*CREATE, "--allow", "read", "--json").json["prefix"]
    assert run("keys", "revoke", prefix, "--store", "log.db", "--json").json == {"revoked": True}
    for again in (prefix, "nokey"):
        refused = run("keys", "revoke", again, "--store", "log.db")
        assert (refused.code, refused.out) == (1, "no key of this prefix is in force\n")
    states = {each["prefix"]: each["state"] for each in run("keys", "list", "--store", "log.db", "--json").json}
    assert states == {prefix: "revoked", kept: "in force"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--client", "bot", "--agent", "a"], "Missing option '--allow'"),
        (["--client", "bot", "--allow", "read"], "Missing option '--agent'"),
        (["--client", "bot", "--agent", "a", "--allow", "read,fly"], "'fly' is none of read, append,"),
        (["--client", "bot", "--agent", "a", "--allow", ""], "'' is none of read,"),
        (["--client", "a:user:b", "--agent", "a", "--allow", "read"], "must be 1 to 100 letters, digits"),
        (["--client", "bot", "--agent", "", "--allow", "read"], "must be 1 to 100 printable characters"),
        (["--client", "b", "--agent", "a", "--allow", "read", "--expires-in-days", "0"], "is not in the range"),
        (
            ["--client", "b", "--agent", "a", "--allow", "read", "--store", "memory://"],
            "store.url: memory:// keeps nothing after the command",
        ),
    ],
)
def test_what_makes_no_key(run: Run, folder: Path, options: list[str], problem: str) -> None:
    refused = run("keys", "create", *options)
    assert (refused.code, refused.out) == (2, "")
    assert problem in refused.err
    assert list(folder.iterdir()) == []


def test_no_keys(run: Run) -> None:
    prefix = run(*CREATE, "--allow", "read", "--json").json["prefix"]
    assert prefix
    assert run("keys", "list", "--store", "memory://").out == "no keys\n"
    assert run("keys", "list", "--store", "missing.db").err.startswith("error: store: there is no database")
