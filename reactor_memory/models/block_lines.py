"""Lines of memory blocks, and the layout that keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, overload

import msgspec

from reactor_memory.models import Value
from reactor_memory.models.excerpts import Excerpt


class BlockLine(Value, frozen=True, kw_only=True):
    """One line of a memory block. `tokens` is about what the line adds to its block; a source of a plug-in may leave
    that to the library.

    Lines of lower `value` are given up first; of equal value, the earlier one. `source_seqs` are the messages that
    the line was made from.
    """

    text: str
    tokens: int = 0
    value: float = 0.0
    source_seqs: tuple[int, ...] = ()


class ReadyLine(Value, frozen=True, kw_only=True, array_like=True):
    """A line that was written when the summary was made. It tells message `seq`: where the window shows that, the line
    is left out, unless it `stays`.
    """

    text: str
    tokens: int
    value: float = 0.0
    source_seqs: tuple[int, ...] = ()
    seq: int = 0
    stays: bool = False

    @property
    def line(self) -> BlockLine:
        return BlockLine(text=self.text, tokens=self.tokens, value=self.value, source_seqs=self.source_seqs)


class ReadyLines(Value, frozen=True, kw_only=True):
    """The lines of facts; `made_from` is a checksum of these."""

    made_from: int
    lines: tuple[ReadyLine, ...]


class BlockLines(Sequence[BlockLine]):
    """The lines of a block as a store keeps them; equal to any sequence of the same lines.

    `text` is what a context shows of all of them, one a line. The rest of each line is JSON (`line_details`), decoded
    when somebody looks at a line: most loads show a whole block and look at none.
    """

    __slots__ = ("_details", "_length", "_lines", "text")

    def __init__(self, text: str, details: bytes, length: int) -> None:
        self.text = text
        self._details = details
        self._length = length
        self._lines: tuple[BlockLine, ...] | None = None

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> BlockLine: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[BlockLine]: ...

    def __getitem__(self, index: int | slice) -> BlockLine | Sequence[BlockLine]:
        if self._lines is None:
            texts = self.text.split("\n") if self._length else ()
            self._lines = tuple(
                [
                    BlockLine(text=text, tokens=tokens, value=value, source_seqs=source_seqs)
                    for text, (tokens, value, source_seqs) in zip(texts, _DETAILS.decode(self._details), strict=True)
                ]
            )
        return self._lines[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self[:] == tuple(cast("Sequence[object]", other))

    __hash__ = None  # pyright: ignore[reportAssignmentType]


_DETAILS = msgspec.json.Decoder(tuple[tuple[int, float, tuple[int, ...]], ...])


def lines_text(lines: Sequence[str]) -> str:
    """All lines, one a line."""
    body = "\n".join(lines)
    if len(body.splitlines()) == len(lines):
        return body
    # a line that breaks could pass for another line, or close the block
    return "\n".join([" ".join(line.splitlines()) for line in lines])


def line_details(lines: Sequence[BlockLine]) -> list[tuple[int, float, tuple[int, ...]]]:
    """What `BlockLines` keeps of lines beside their text."""
    return [(line.tokens, line.value, line.source_seqs) for line in lines]


class Layout(Value, frozen=True, kw_only=True):
    """Where the window of a context starts and which lines its memory blocks hold.

    It stays the same between evictions, so that everything left of the window is the same bytes turn after turn.
    `fact_tokens` and `narrative_tokens` are what the two blocks cost as messages, overhead included; `left_out` counts
    the lines for which there was no room, `floor` is the rank (value, seq) that a line of facts needs,
    `excerpts` are the messages of the window that it does not show whole.
    `seq` is the length of the session when it was made, `epoch` the one of the summary that it was made from: with
    another epoch the layout shows something that went out of view since, and must not be used.
    """

    seq: int
    window_start_seq: int
    fact_lines: Sequence[BlockLine] = ()
    narrative: Sequence[BlockLine] = ()
    fact_tokens: int = 0
    narrative_tokens: int = 0
    left_out: int = 0
    floor: tuple[float, int] = (0.0, 0)
    covered_seq: int = 0
    epoch: int = 0
    excerpts: tuple[Excerpt, ...] = ()

    @property
    def memory_tokens(self) -> int:
        return self.fact_tokens + self.narrative_tokens
