"""The page of evaluations: how much of a session, or of a file, a context still tells, by its size."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

import anyio.to_thread
from litestar import Request, Response, get, post
from litestar.datastructures import UploadFile
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.exceptions import NotFoundException
from litestar.params import Body, FromQuery
from litestar.response import Redirect

from reactor_memory.errors import InvalidInputError
from reactor_memory.evaluation.charts import Line, line_chart
from reactor_memory.evaluation.markup import Markup
from reactor_memory.evaluation.session_files import reader
from reactor_memory.evaluation.sessions import LabelledSession
from reactor_memory.studio.measuring import BUDGETS, STRATEGIES, Evaluation, details_of
from reactor_memory.studio.rendering import address
from reactor_memory.studio.studio import Studio

MOST_MESSAGES = 100_000
MOST_CHARACTERS = 32 * 1024 * 1024
"""All sessions of a file together are kept while they are evaluated."""

NAMES = {"hierarchical": "Reactor Memory", "take-last": "take-last"}


@get("/eval")
async def eval_page(
    request: Request[Any, Any, Any],
    studio: NamedDependency[Studio],
    run: FromQuery[str | None] = None,
    id: FromQuery[str] = "",  # noqa: A002 (the name in the address)
) -> Response[str]:
    """The results of a run, or how far it is; a form to start another."""
    found = None if run is None else studio.evaluations.find(run)
    if run is not None and found is None:
        raise NotFoundException("The Studio keeps the newest 20 results while it runs. Start this evaluation again.")
    part = "result" if request.headers.get("x-fragment") == "result" else None
    return await studio.pages.show(
        "eval.html",
        part=part,
        run=run,
        found=found,
        chart=chart_of(found) if found and found.is_done and not found.problem else None,
        rows=rows_of(found) if found else [],
        runs=studio.evaluations.all(),
        id=id,
        budgets=BUDGETS,
    )


@post("/eval/session")
async def evaluate_session(
    studio: NamedDependency[Studio], data: Annotated[dict[str, str], Body(media_type=RequestEncodingType.URL_ENCODED)]
) -> Redirect:
    """Replay a session of the store, and look for every number, code, date and time in it."""
    session = await studio.session(data.get("id", "").strip())
    messages = await studio.memory.read_messages(session.session_id, user_id=session.owner_id)
    details = await anyio.to_thread.run_sync(lambda: tuple(details_of(messages)))
    if not details:
        raise InvalidInputError("id", "names a session without any number, code or date to look for: choose another")
    labelled = LabelledSession(name=session.session_id, messages=messages, probes=details)
    return _started(studio, session.session_id, [labelled], labelled=False)


@post("/eval/file")
async def evaluate_file(
    studio: NamedDependency[Studio],
    data: Annotated[dict[str, Any], Body(media_type=RequestEncodingType.MULTI_PART)],
) -> Redirect:
    """Replay the sessions of a file (docs/formats.md), LoCoMo or LongMemEval with their probes."""
    file = data.get("file")
    if not (isinstance(file, UploadFile) and file.file.read(1)):
        raise InvalidInputError("file", "is empty: choose a file of sessions in JSON Lines, LoCoMo or LongMemEval")
    max_bytes = studio.memory.container.settings().limits.max_session_bytes
    sessions = await anyio.to_thread.run_sync(partial(_read, file.file, max_bytes))
    return _started(studio, file.filename, sessions, labelled=any(session.probes for session in sessions))


def _started(studio: Studio, title: str, sessions: Sequence[LabelledSession], *, labelled: bool) -> Redirect:
    run = studio.evaluations.start(title, sessions, labelled=labelled)
    return Redirect(address("/eval", run=run), status_code=303)


def _read(content: IO[bytes], max_bytes: int) -> Sequence[LabelledSession]:
    """The sessions of a file; those without probes get the details that they say."""
    with tempfile.TemporaryDirectory(prefix="reactor-memory-") as folder:
        path = Path(folder) / "sessions"
        content.seek(0)
        with path.open("wb") as file:
            shutil.copyfileobj(content, file)
        found = list(_labelled(path, max_bytes))
    if any(session.probes for session in found):
        return found
    return [
        LabelledSession(name=each.name, messages=each.messages, probes=tuple(details_of(each.messages)))
        for each in found
    ]


def _labelled(path: Path, max_bytes: int) -> Iterator[LabelledSession]:
    """The sessions of a file. Raises `InvalidInputError` if they are too much to be kept while they are evaluated."""
    messages = characters = 0
    for line in reader("auto", max_bytes=max_bytes)(path):
        messages += len(line.messages)
        characters += sum(len(message.content) for message in line.messages)
        if messages > MOST_MESSAGES or characters > MOST_CHARACTERS:
            raise InvalidInputError("file", "holds too many sessions for this page: use reactor-memory eval")
        yield LabelledSession(name=line.session_id, messages=line.messages, probes=line.probes())


def chart_of(found: Evaluation) -> Markup:
    lines = [
        Line(name=NAMES[strategy], style=style, shares=_shares(found, strategy))
        for style, strategy in enumerate(STRATEGIES)
        if _shares(found, strategy)
    ]
    measure = "attributable" if found.labelled else "survival"
    told = " ".join(f"{line.name}: {line.end:.0%} at {BUDGETS[-1]:,} tokens." for line in lines)
    return line_chart(lines, name="result", title=f"{measure} by tokens of the context", description=told)


def _shares(found: Evaluation, strategy: str) -> dict[int | None, float]:
    shares = {row.budget: row.attributable if found.labelled else row.survival for row in found.outcomes[strategy]}
    return {budget: share for budget, share in shares.items() if share is not None}


def rows_of(found: Evaluation) -> Sequence[tuple[str, Sequence[str]]]:
    """A strategy and its share for each budget."""
    return [
        (
            NAMES[strategy],
            [
                f"{_shares(found, strategy)[budget]:.1%}" if budget in _shares(found, strategy) else "–"
                for budget in BUDGETS
            ],
        )
        for strategy in found.outcomes
    ]
