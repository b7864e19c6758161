"""Reading bodies: JSON and nothing else, straight into its type, with an error that names the field.

Of equal keys in an object the last one counts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec
from litestar.connection import Request
from litestar.exceptions import InternalServerException
from litestar.handlers import HTTPRouteHandler
from litestar.types.empty import Empty

from reactor_memory.server import problems
from reactor_memory.server.problems import ProblemError, explained, invalid

_PLACE = " - at `$"
_UNKNOWN = "Object contains unknown field `"
_MISSING = "Object missing required field `"
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)


class JsonRequest(Request[Any, Any, Any]):
    """A request whose body is decoded once, into the type that the handler asks for."""

    async def json(self) -> Any:
        if self._json is Empty:
            self._json = decode(await self.body(), decoder_of(self.route_handler))
        return self._json

    async def body(self) -> bytes:
        try:
            return await super().body()
        except InternalServerException:
            raise ProblemError(problems.MALFORMED, "the body ended early: the caller left") from None


@cache
def decoder_of(handler: HTTPRouteHandler) -> msgspec.json.Decoder[Any]:
    """The decoder of what the handler takes as ``data``."""
    return msgspec.json.Decoder(handler.parsed_fn_signature.parameters["data"].annotation)


def decode(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Raises `ProblemError`: 400 for a body that is not JSON, 422 for JSON of another shape than the model."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _misfit(str(error), decoder) from None
    except RecursionError:
        raise invalid("body", "is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        if _LONE_SURROGATE.search(body):
            raise invalid("body", "holds half a surrogate pair, which is no character") from None
        raise ProblemError(problems.MALFORMED, "the body is not valid JSON in UTF-8") from None


def _misfit(text: str, decoder: msgspec.json.Decoder[Any]) -> ProblemError:
    problem, _, place = text.rpartition(_PLACE) if _PLACE in text else (text, "", "")
    field = place.removesuffix("`").removeprefix(".")
    for begin, tells in ((_UNKNOWN, "is no field of this request"), (_MISSING, "is missing")):
        if problem.startswith(begin):
            return invalid(f"{field}.{problem.removeprefix(begin).removesuffix('`')[:100]}".lstrip("."), tells)
    return invalid(field or "body", explained(problem, decoder.type, field))
