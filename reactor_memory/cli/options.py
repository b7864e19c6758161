"""Kinds of options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click


def list_option(name: str, each: click.ParamType[Any], default: Iterable[str], text: str) -> Callable[..., Any]:
    """An option for values separated by commas; each counts once."""

    def listed(context: click.Context, option: click.Parameter, value: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(each.convert(part.strip(), option, context) for part in value.split(",")))

    return click.option(name, callback=listed, default=",".join(default), show_default=True, metavar="LIST", help=text)
