"""Files that commands write: for their owner alone, never over another file unasked, whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import click

from reactor_memory.cli.characters import echo, json_for_stdout

STDOUT = "-"

_FORCE = f"{__name__}.force"


class Output(Protocol):
    """Where a command writes its results."""

    @property
    def name(self) -> str: ...

    def write(self, data: bytes, /) -> object: ...

    def writelines(self, lines: Iterable[bytes], /) -> object: ...


class Terminal:
    """Standard output, for lines of JSON."""

    name = STDOUT

    def write(self, data: bytes) -> None:
        echo(json_for_stdout(data.decode()), nl=False)

    def writelines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.write(line)


class PrivateFile:
    """A file that only its owner may read. It is written beside its place, and put there when it is complete."""

    def __init__(self, path: Path, *, replaces: bool) -> None:
        self.name = str(path)
        self._path = path
        self._replaces = replaces
        self._opened: Any = None

    def write(self, data: bytes) -> None:
        self.writelines([data])

    def writelines(self, lines: Iterable[bytes]) -> None:
        try:
            if self._opened is None:
                self._opened = tempfile.NamedTemporaryFile(dir=self._path.parent, prefix=".", delete=False)  # noqa: SIM115
            self._opened.writelines(lines)
        except OSError as error:
            raise click.FileError(self.name, hint=error.strerror) from None

    def put(self) -> None:
        """Into its place, unless another file has come to lie there."""
        if self._opened is None:
            return
        try:
            self._opened.close()
            if not self._replaces:
                self._path.touch(mode=0o600, exist_ok=False)
            Path(self._opened.name).replace(self._path)
        except OSError as error:
            self.drop()
            raise click.FileError(self.name, hint=error.strerror) from None

    def drop(self) -> None:
        if self._opened is not None:
            self._opened.close()
            Path(self._opened.name).unlink(missing_ok=True)


@contextmanager
def _complete(file: PrivateFile) -> Generator[PrivateFile]:
    """Put in its place when the command ends, also with an exit code of its own; not if it fails."""
    try:
        yield file
    except click.exceptions.Exit:
        file.put()
        raise
    except BaseException:
        file.drop()
        raise
    else:
        file.put()


if TYPE_CHECKING:
    _ParamType = click.ParamType[Output]
else:
    _ParamType = click.ParamType  # takes no parameter in older versions


class OutputType(_ParamType):
    """A file to write. What is wrong with its place is said before the command begins."""

    name = "file"

    def __init__(self, *, may_print: bool) -> None:
        self._may_print = may_print

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        ctx = ctx or click.get_current_context()
        if not isinstance(value, str):
            return value
        if value == STDOUT and not self._may_print:
            raise click.BadParameter("name a file: the terminal shows the results", ctx, param)
        if value == STDOUT:
            return Terminal()
        path, replaces = Path(value), bool(ctx.meta.get(_FORCE))
        if not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent}", ctx, param)
        if path.is_dir():
            raise click.BadParameter(f"{path} is a folder", ctx, param)
        if path.exists() and not path.is_file():
            return cast("Output", ctx.with_resource(path.open("wb")))  # a pipe or a device
        if path.exists() and not replaces:
            raise click.BadParameter(f"{path} exists; --force replaces it", ctx, param)
        return ctx.with_resource(_complete(PrivateFile(path, replaces=replaces)))


def file_option(*names: str, text: str, may_print: bool = False, default: str | None = None) -> Callable[..., Any]:
    """An option for a file that is written at the end."""
    return click.option(*names, type=OutputType(may_print=may_print), default=default, metavar="FILE", help=text)


def force_option() -> Callable[..., Any]:
    """`--force`, for commands with a `file_option`."""

    def remember(context: click.Context, _: click.Parameter, given: bool) -> None:
        context.meta[_FORCE] = given

    return click.option(
        "--force",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=remember,
        help="Replace files that exist.",
    )
