"""HTML and SVG, safe by construction: text is escaped unless it came out of `tag`. Pure."""

from __future__ import annotations

from html import escape

from reactor_memory.text.printable import printable


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()

    def __html__(self) -> str:
        """What templates ask whether text is markup."""
        return self


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """An element. In the names of attributes ``_`` stands for ``-``, and at the end for nothing (``class_``)."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(printable(str(value)))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: str) -> Markup:
    """Pieces one behind the other; those that are no markup are escaped, characters that steer the reader replaced."""
    return Markup("".join(each if isinstance(each, Markup) else escape(printable(each)) for each in children))
