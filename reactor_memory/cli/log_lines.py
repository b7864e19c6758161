"""The log of a command, on stderr, one line an entry."""

from __future__ import annotations

import logging

OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
"""What every record has, beside what it is about."""


class LogLine(logging.Formatter):
    """The time, the level, what happened and its fields. Tracebacks are for `verbose` runs."""

    def __init__(self, *, verbose: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._verbose = verbose

    def format(self, record: logging.LogRecord) -> str:
        fields = {key: value for key, value in vars(record).items() if key not in OWN_FIELDS}
        line = " ".join([super().formatMessage(self._prepared(record)), *(f"{k}={v}" for k, v in fields.items())])
        return f"{line}\n{self.formatException(record.exc_info)}" if self._verbose and record.exc_info else line

    def _prepared(self, record: logging.LogRecord) -> logging.LogRecord:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        return record


def log_to_stderr(*, verbose: bool) -> None:
    """Errors only, unless `verbose`: what a command refuses, it says itself."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogLine(verbose=verbose))
    handler.setLevel(logging.INFO if verbose else logging.ERROR)
    log = logging.getLogger("reactor_memory")
    log.handlers = [handler]
    if verbose:
        log.setLevel(logging.INFO)


def log_alike(*names: str) -> None:
    """Let these loggers, too, write what and where `log_to_stderr` says, and no framework set up a log of its own."""
    logging.basicConfig(handlers=[logging.NullHandler()])
    for name in names:
        logging.getLogger(name).handlers = logging.getLogger("reactor_memory").handlers
