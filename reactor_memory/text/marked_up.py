"""Pages and XML as what they say: the lines of a page, the values of elements. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from html.parser import HTMLParser

MOST_READ = 40_000
"""Characters that are read."""

_PAGE = re.compile(r"<!doctype html|<(?:html|body|div|table|p|h[1-6]|ul|ol)\b", re.IGNORECASE)
_MARKED_UP = re.compile(r"<(?:[?!]?[A-Za-z][\w:.-]{0,60})[\s/>]")
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg"})
_INLINE = frozenset(
    {
        "a",
        "abbr",
        "b",
        "bdi",
        "code",
        "em",
        "font",
        "i",
        "kbd",
        "label",
        "mark",
        "s",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "u",
    }
)


def is_marked_up(text: str) -> bool:
    """Whether a whole text is a page or XML: it begins with a tag and ends with one."""
    return text.endswith(">") and _MARKED_UP.match(text) is not None and "</" in text


def told_by(text: str) -> str | Mapping[str, object]:
    """The lines of a page that are seen; of XML the values by the names of their elements, a list where one repeats."""
    reader = _Reader()
    reader.feed(text[:MOST_READ])
    reader.close()
    return (
        "\n".join(filter(None, (" ".join(line.split()) for line in reader.lines)))
        if _PAGE.search(text[:MOST_READ])
        else reader.values
    )


class _Reader(HTMLParser):
    """Collects lines and values in one run; it never fails, whatever is open or closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = [""]
        self._found: defaultdict[str, list[object]] = defaultdict(list)
        self._open = ""
        self._unseen = 0

    @property
    def values(self) -> Mapping[str, object]:
        return {name: told[0] if len(told) == 1 else told for name, told in self._found.items()}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN
        self._open = tag.rpartition(":")[2]
        if tag not in _INLINE:
            self.lines.append("")
        kept = {name: value for name, value in attrs if value and not name.startswith("xmlns")}
        if kept:
            self._found[self._open].append(kept)

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        self._open = ""
        if tag not in _INLINE:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if self._unseen or not text:
            return
        self.lines[-1] += data
        if self._open:
            self._found[self._open].append(text)
