"""The operations on notes as a pure function of the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from reactor_memory.core.validation import check_text
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.notes import sections
from reactor_memory.models import Value

Refusal: TypeAlias = Literal["invalid", "forbidden", "not_found", "ambiguous", "too_large"]

DESTRUCTIVE: Final = frozenset(
    {"overwrite", "delete_section_by_header", "replace_section_by_header", "delete_all_notes"}
)
"""The operations that take text away."""

OPERATIONS: Final = (
    "read",
    "overwrite",
    "append",
    "prepend",
    "delete_section_by_header",
    "replace_section_by_header",
    "delete_all_notes",
)


class Change(Value, frozen=True, kw_only=True):
    """What is asked for. `separator` stands between what there is and what is added (None: one blank line)."""

    operation: str = "read"
    content: str | None = None
    section_header: str | None = None
    create_if_missing: bool = False
    separator: str | None = None


class RefusedChangeError(Exception):
    """The notes stay as they are. The text tells an agent why, and what to do instead."""

    def __init__(self, status: Refusal, problem: str) -> None:
        super().__init__(problem)
        self.status: Refusal = status


def changed(text: str, change: Change) -> str:
    """The notes after the change. Raises `RefusedChangeError`."""
    operation = _OPERATIONS.get(change.operation)
    if operation is None:
        raise RefusedChangeError("invalid", f"unknown operation; use one of: {', '.join(OPERATIONS)}")
    try:
        _check_texts(change)
        return operation(text, change)
    except InvalidInputError as error:
        raise RefusedChangeError("invalid", str(error)) from None
    except sections.NoSuchSectionError as error:
        problem = f"no section has this section_header{_listed('; there are', error.headers)}"
        raise RefusedChangeError("not_found", problem) from None
    except sections.AmbiguousSectionError as error:
        problem = f"several sections have this section_header{_listed('; name one of', error.headers)}"
        raise RefusedChangeError("ambiguous", problem) from None
    except sections.BrokenStructureError:
        problem = "the sections would not stay apart: close every code fence, and use a plain title as section_header"
        raise RefusedChangeError("invalid", problem) from None


def _check_texts(change: Change) -> None:
    for field in ("content", "section_header", "separator"):
        value: object = getattr(change, field)
        if value is not None:
            check_text(field, value)


def _listed(intro: str, headers: tuple[str, ...]) -> str:
    return f"{intro}: {'; '.join(headers)}" if headers else ""


def _read(text: str, change: Change) -> str:
    return text


def _overwrite(text: str, change: Change) -> str:
    return _content(change)


def _append(text: str, change: Change) -> str:
    return sections.joined(text, _filled_content(change), change.separator)


def _prepend(text: str, change: Change) -> str:
    return sections.prepended(text, _filled_content(change), change.separator)


def _delete_section(text: str, change: Change) -> str:
    return sections.removed(text, _header(change))


def _replace_section(text: str, change: Change) -> str:
    header, content = _header(change), _content(change)
    try:
        return sections.replaced(text, header, content)
    except sections.NoSuchSectionError:
        if not change.create_if_missing:
            raise
    return sections.with_new(text, header, content)


def _delete_all(text: str, change: Change) -> str:
    return ""


_OPERATIONS: dict[str, Callable[[str, Change], str]] = dict(
    zip(
        OPERATIONS,
        (_read, _overwrite, _append, _prepend, _delete_section, _replace_section, _delete_all),
        strict=True,
    )
)


def _content(change: Change) -> str:
    if change.content is None:
        raise InvalidInputError("content", f"is missing; {change.operation} needs it")
    return change.content


def _filled_content(change: Change) -> str:
    content = _content(change)
    if not content.strip():
        raise InvalidInputError("content", f"is blank; {change.operation} needs a text")
    return content


def _header(change: Change) -> str:
    if change.section_header is None or not change.section_header.strip():
        raise InvalidInputError("section_header", f"is missing; {change.operation} needs the title of a section")
    return change.section_header
