"""The log of a service, on stderr: JSON for programs, or lines for whoever develops on their own machine."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from traceback import extract_tb

import msgspec

from reactor_memory.cli.log_lines import OWN_FIELDS, LogLine

_MOST_CAUSES = 5


class JsonLine(logging.Formatter):
    """One JSON object a record. Of an exception only its type and where it was raised are told: what its author wrote
    into its text may be the text of a message. The same holds for what other libraries fill into their messages.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message_of(record),
        }
        line |= {key: value for key, value in vars(record).items() if key not in OWN_FIELDS}
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = _exceptions(record.exc_info[1])
        return msgspec.json.encode(line, enc_hook=str).decode()


def _message_of(record: logging.LogRecord) -> str:
    if record.name.startswith("reactor_memory"):
        return record.getMessage()
    return str(record.msg).partition("\n")[0]


def _exceptions(error: BaseException | None) -> list[dict[str, object]]:
    """The exception and what caused it, the last one first."""
    told: list[dict[str, object]] = []
    while error is not None and len(told) < _MOST_CAUSES:
        frames = extract_tb(error.__traceback__)
        told.append({"type": type(error).__name__, "at": [f"{f.filename}:{f.lineno} {f.name}" for f in frames]})
        error = error.__cause__ or error.__context__
    return told


def log_service(*, as_json: bool) -> None:
    """Everything that a service has to say: of the library what it does, of others what went wrong."""
    # A line tells none of these, and every record would look them up
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    setattr(logging, "_srcfile", None)  # noqa: B010 - as the documentation of `logging` says, to look for no caller
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLine() if as_json else LogLine(verbose=False))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    own = logging.getLogger("reactor_memory")
    own.handlers = []
    own.setLevel(logging.INFO)
