"""What servers with OpenAI's wire format do not have in common: the fields of a question that some of them refuse."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from reactor_memory.models import Value
from reactor_memory.providers.questions import Request

ResponseFormat: TypeAlias = Literal["auto", "json_schema", "json_object", "text"]

_FORMATS = ("json_schema", "json_object", "text")
_LIMITS = ("max_tokens", "max_completion_tokens")
_ABOUT_FORMAT = ("response_format", "json_schema", "json_object", "structured output", "guided", "grammar")


class Dialect(Value, frozen=True, kw_only=True):
    """The forms of the answer and the names of its limit that a server may know, the best first: the first is used."""

    formats: tuple[str, ...] = _FORMATS
    limits: tuple[str, ...] = _LIMITS
    service_tier: str | None = None

    def question(self, model: str, request: Request, max_output_tokens: int) -> dict[str, Any]:
        """The body of a request. A form of ``text`` leaves it to the instruction to ask for JSON."""
        question: dict[str, Any] = {
            "model": model,
            "messages": [
                {"role": "system", "content": request.instruction},
                {"role": "user", "content": request.document},
            ],
            self.limits[0]: max_output_tokens,
        }
        if self.service_tier:
            question["service_tier"] = self.service_tier
        if self.formats[0] == "json_schema":
            schema = {"name": "memory", "strict": True, "schema": strict_schema(request.schema)}
            question["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.formats[0] == "json_object":
            question["response_format"] = {"type": "json_object"}
        return question

    def without(self, complaint: str) -> Dialect | None:
        """The dialect without what a server that refused a question complains of; None if that is something else, or
        nothing is left to try. `complaint` is the answer in lower case.
        """
        if self.service_tier and "service_tier" in complaint:
            return replace(self, service_tier=None)
        if self.limits[0] in complaint and len(self.limits) > 1:
            return replace(self, limits=self.limits[1:])
        if any(word in complaint for word in _ABOUT_FORMAT) and len(self.formats) > 1:
            return replace(self, formats=self.formats[1:])
        return None


def dialect_for(response_format: ResponseFormat, *, is_openai: bool, service_tier: str | None = None) -> Dialect:
    """What to begin with. OpenAI's newer models refuse ``max_tokens``; other servers knew it first."""
    formats = _FORMATS if response_format == "auto" else (response_format,)
    return Dialect(formats=formats, limits=_LIMITS[::-1] if is_openai else _LIMITS, service_tier=service_tier)


def strict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in the dialect of OpenAPI as the JSON Schema that the strict mode asks for: no property left open."""
    strict = {**schema, "type": schema["type"].lower()}
    if "items" in schema:
        strict["items"] = strict_schema(schema["items"])
    if "properties" in schema:
        strict["properties"] = {name: strict_schema(each) for name, each in schema["properties"].items()}
        strict["additionalProperties"] = False
    return strict
