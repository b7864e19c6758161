"""The messages of a request as providers want them: each with its calls, and the results that answer them.

What came with reasoning in several messages becomes one, unless its provider gave it so. A message that the provider
gave goes back to it as it came; ids that it would refuse, or that came before, get other ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from reactor_memory.forms.pieces import arguments_of
from reactor_memory.models import (
    Given,
    Message,
    ToolCall,
    as_said,
    frames,
    is_as_given,
    is_posted_summary,
    reasoned_runs,
)
from reactor_memory.models.turns import find_pairs

_ASSISTANT = ("assistant", "agent")
_SYSTEM = ("system", "summary")
_LONGEST_ID = 40


class Exchange(NamedTuple):
    """A message that is no result, with its calls and their results under the ids that the provider gets. `places`:
    where the results stand among the messages, as `place` is where the message does.
    """

    message: Message
    calls: Sequence[ToolCall]
    results: Mapping[str, Sequence[Message]]
    place: int = 0
    places: Mapping[str, int] = {}

    def as_given(self, form: str) -> Any:
        """What the provider of this form gave; None for what another one gave, or was changed since."""
        return as_given(self.message, form, ids=[call.id for call in self.calls])

    def results_as_given(self, form: str) -> Iterator[tuple[str, Sequence[Message], Any]]:
        for call_id, answers in self.results.items():
            yield call_id, answers, as_given(answers[0], form, result_id=call_id) if len(answers) == 1 else None

    @property
    def role(self) -> str:
        role = self.message.role
        if is_system(self.message):
            return "system"
        return "assistant" if role in (*_ASSISTANT, "summary") else "user"


def is_of(message: Message, form: str) -> bool:
    """Whether a provider of this form gave the message, and it is unchanged."""
    given = message.given
    return given is not None and (given.form == form or _is_shared(given, form)) and is_as_given(message)


def _is_shared(given: Given, form: str) -> bool:
    """Whether what reads the same to OpenAI and Anthropic reads so here, too: to Responses and Ollama a text does."""
    if given.form != "chat":
        return False
    is_text = given.frame is None or not isinstance(given.frame.get("content"), list)
    return form in ("openai", "anthropic") or (is_text and form in ("openai_responses", "ollama"))


def as_given(message: Message, form: str, *, ids: Sequence[str] = (), result_id: str | None = None) -> Any:
    """What the provider of this form gave, with these ids; None for what another one gave, or was changed since. For
    Responses the items.
    """
    if message.given is None or not is_of(message, form):
        return None
    if message.given.frame is None:
        written: Any = {"role": message.role, "content": message.content}
    else:
        held = frames.Held(message.content, message.parts, message.tool_calls, ids, result_id)
        written = frames.filled(message.given.frame, held, arguments_of)
    return [written] if form == "openai_responses" and isinstance(written, dict) else written


def in_own_form(message: Message) -> Any:
    """What the provider of the message gave, with the ids that the message has."""
    given = message.given
    ids = [call.id for call in message.tool_calls]
    return None if given is None else as_given(message, given.form, ids=ids, result_id=message.tool_call_id)


def exchanges(
    messages: Sequence[Message], form: str, *, not_in_ids: re.Pattern[str] | None = None
) -> Iterator[Exchange]:
    """The messages that are no results, each with the calls and results that belong to it.

    Only the assistant calls tools; what stands as calls of others is not shown.
    """
    ids = _CallIds(not_in_ids)
    messages = _joined_runs(messages, form)
    pairs = find_pairs(messages)
    results = {pair.call: [messages[index] for index in pair.results] for pair in pairs}
    places = {id(messages[index]): index for pair in pairs for index in pair.results}
    for index, message in enumerate(map(as_said, messages)):
        if message.role == "tool":
            continue
        made = message.tool_calls if message.role in _ASSISTANT else ()
        is_own = is_of(message, form)
        calls = [msgspec.structs.replace(call, id=ids.of(call.id, is_own=is_own)) for call in made]
        answers = _by_call(results.get(index, ()), made, calls)
        where = {call_id: places[id(found[0])] for call_id, found in answers.items()}
        yield Exchange(message, calls, answers, index, where)


def _joined_runs(messages: Sequence[Message], form: str) -> Sequence[Message]:
    """The messages, those that came with reasoning in several put together, unless they were given in this form."""
    runs = [
        run
        for run in reasoned_runs(messages, range(len(messages)), len(messages))
        if len(run) > 1 and not _stay_apart(messages[run.start : run.stop], form)
    ]
    joined: list[Message] = []
    for run, after in zip([range(0), *runs], [*runs, range(len(messages), len(messages))], strict=True):
        joined += [_as_one(messages[run.start : run.stop])] if run else []
        joined += messages[run.stop : after.start]
    return joined


def _stay_apart(run: Sequence[Message], form: str) -> bool:
    """Whether the provider gave them as they are; items of Responses stand one by one anyway."""
    return all(is_of(message, form) for message in run) or (form == "openai_responses" and is_of(run[0], form))


def _as_one(messages: Sequence[Message]) -> Message:
    return msgspec.structs.replace(
        messages[0],
        content="\n".join(message.content for message in messages if message.content),
        parts=tuple(part for message in messages for part in message.parts),
        tool_calls=tuple(call for message in messages for call in message.tool_calls),
        given=None,
    )


class _CallIds:
    """Ids under which every call of a request can be told from the others, as providers demand: an id that came
    before, or that the provider refuses, gets another form.
    """

    def __init__(self, refused: re.Pattern[str] | None) -> None:
        self._refused = refused
        self._times: dict[str, int] = {}

    def of(self, given: str, *, is_own: bool = False) -> str:
        """`is_own`: an id that the provider gave itself."""
        accepted = given or "call"
        if not is_own:
            accepted = (self._refused.sub("_", accepted) if self._refused else accepted)[:_LONGEST_ID]
        times = self._times.get(accepted, 0)
        free = accepted
        while free in self._times:
            times += 1
            free = f"{accepted[: _LONGEST_ID - 8]}_{times}"
        self._times[accepted] = times
        self._times.setdefault(free, 0)
        return free


def _by_call(
    results: Sequence[Message], made: Sequence[ToolCall], calls: Sequence[ToolCall]
) -> dict[str, list[Message]]:
    """The results by the ids that the calls got. Those of no call that is shown are left out.

    Of calls that a model made under one id, the first result answers the first, and so on; each needs one: where there
    are fewer, the last is shared.
    """
    waiting: dict[str, list[str]] = {}
    for call, shown in zip(made, calls, strict=True):
        waiting.setdefault(call.id, []).append(shown.id)
    found: dict[str, list[Message]] = {}
    for result in results:
        found.setdefault(result.tool_call_id or "", []).append(result)
    answers: dict[str, list[Message]] = {}
    seen: dict[str, int] = {}
    for result in results:
        given = result.tool_call_id or ""
        shown = waiting.get(given, [])
        if not shown:
            continue
        place = seen.get(given, 0)
        seen[given] = place + 1
        answers.setdefault(shown[min(place, len(shown) - 1)], []).append(result)
        for call_id in shown[len(found[given]) :] if place == len(found[given]) - 1 else ():
            answers.setdefault(call_id, []).append(result)
    return answers


def is_system(message: Message) -> bool:
    """What an agent posted has no say over the model."""
    return message.role in _SYSTEM and not is_posted_summary(message)
