"""What the value of a setting may be, and how a section names it in its errors. Secrets are masked here."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Self, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SecretStr,
    SerializationInfo,
    ValidationError,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler  # where each version has it
from pydantic_settings import NoDecode

from reactor_memory.errors import ConfigurationError

MASK = "********"
UNMASKED = object()
"""The context in which this module dumps settings as they are. Everybody else gets them without secrets."""

OPTIONS = "plugins.options."

_SECRET_NAME = re.compile(r"password|secret|token|key", re.IGNORECASE)
_USERINFO = re.compile(r"(://[^/?#:@]*:).*", re.DOTALL)
_QUERY_VALUE = re.compile(r"([?&](?=[^=&?]*(?:password|secret|token|key))[^=&?]*+=)[^&#]*", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_LLM = re.compile(r"(?<=[._])llm$")
"""Another word for a model."""
_FILE_MODE = re.compile(r"0?6[0246]{2}")
_MORE_THAN_ADDRESS = re.compile(r"[?#]|://[^/]*@")


def canonical_name(text: str) -> str:
    """The name of an implementation or a plug-in as it is compared: a hyphen is an underscore."""
    return text.strip().replace("-", "_")


def _plugin_name(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return canonical_name(text)


def _store_url(text: str) -> str:
    if not _URL.match(text):
        raise ValueError("must begin with a scheme, such as sqlite:///file.db, memory:// or postgresql://host/name")
    if text.startswith("memory://") and text != "memory://":
        raise ValueError("has something behind memory://, which takes nothing: write memory://")
    scheme, _, rest = text.partition("://")
    if scheme == "file":
        raise ValueError("is an address of SQLite's own: write sqlite:///file.db, or memory://")
    if scheme.startswith("sqlite") and "?" in rest:
        raise ValueError(
            "has parameters behind ?, of which a file takes none: write sqlite:///file.db (a file that cannot be "
            "written is opened for reading), and %3F for a ? in a name"
        )
    return _without_driver(scheme, rest)


_DRIVERS = {"sqlite": "aiosqlite", "postgresql": "asyncpg", "postgres": "asyncpg"}
"""Those that are used anyway: SQLAlchemy writes them behind a plus."""


def _without_driver(scheme: str, rest: str) -> str:
    engine, plus, driver = scheme.partition("+")
    if plus and driver != _DRIVERS.get(engine, driver):
        raise ValueError(f"names another driver: write {engine}://, which uses {_DRIVERS[engine]}")
    return f"{engine if engine in _DRIVERS else scheme}://{rest}"


def _dumped_url(url: str, info: SerializationInfo) -> str:
    return url if info.context is UNMASKED else masked_url(url)


def _dumped_options(options: Any, info: SerializationInfo) -> Any:
    return options if info.context is UNMASKED else _masked_options(options)


def _masked_options(options: Any, name: str = "") -> Any:
    """Options of plug-ins without what is a secret by its name, and without the passwords of addresses."""
    if _SECRET_NAME.search(name) and options is not None:
        return MASK
    if isinstance(options, dict):
        return {key: _masked_options(each, str(key)) for key, each in cast("dict[Any, Any]", options).items()}
    if isinstance(options, list | tuple):
        return [_masked_options(each) for each in cast("Sequence[Any]", options)]
    return masked_url(options) if isinstance(options, str) else options


def web_url(text: str) -> str:
    if not _WEB_URL.match(text):
        raise ValueError("must begin with http:// or https:// and a host")
    if _MORE_THAN_ADDRESS.search(text):
        raise ValueError("must be an address without user, password, query or fragment: a key belongs in api_key")
    if not _has_host_and_port(text):
        raise ValueError("must have a host, in brackets if it is one of IPv6, and no port or one up to 65535")
    return text


def _file_mode(value: Any) -> Any:
    if not isinstance(value, str) or not _FILE_MODE.fullmatch(value):
        raise ValueError('must be octal digits in quotes, such as "0600": the owner reads and writes, nobody executes')
    return value


def _has_host_and_port(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def names_of(value: Any) -> Any:
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _prompt(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


PluginName = Annotated[str, AfterValidator(_plugin_name)]
StoreUrl = Annotated[str, AfterValidator(_store_url), PlainSerializer(_dumped_url)]
PluginOptions = Annotated[dict[PluginName, dict[str, Any]], PlainSerializer(_dumped_options)]
PluginNames = Annotated[tuple[PluginName, ...], NoDecode, BeforeValidator(names_of)]
FileMode = Annotated[str, BeforeValidator(_file_mode)]
WebUrl = Annotated[str, AfterValidator(web_url)]
Prompt = Annotated[str, AfterValidator(_prompt)]


class Section(BaseModel):
    """A group of settings. `prefix` is its part of the key."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True, validate_default=True
    )
    prefix: ClassVar[str] = ""

    @model_validator(mode="wrap")
    @classmethod
    def _name_the_key(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(values)
        except ValidationError as error:
            raise configuration_error(error, keys_of_sections(), prefix=cls.prefix) from None

    def _refuse(self, key: str, problem: str) -> ConfigurationError:
        return ConfigurationError(f"{self.prefix}.{key}", problem)


def masked_url(url: str) -> str:
    """The URL with its passwords masked: the one before the host, and what looks like one in the query."""
    before, at, rest = url.rpartition("@")
    return _QUERY_VALUE.sub(rf"\g<1>{MASK}", _USERINFO.sub(rf"\g<1>{MASK}", before) + at + rest)


def printed_value(key: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, SecretStr) or (key.startswith(OPTIONS) and _SECRET_NAME.search(key)):
        return MASK
    if isinstance(value, tuple):
        return ", ".join(map(str, cast("tuple[Any, ...]", value)))
    return str(value).lower() if isinstance(value, bool) else masked_url(str(value))


MOST_SUGGESTED = 4


def keys_of_sections() -> Iterator[str]:
    """Every section, and every key in one."""
    for section in Section.__subclasses__():
        yield section.prefix
        yield from (f"{section.prefix}.{name}" for name in section.model_fields)


def configuration_error(error: ValidationError, known: Iterable[str], *, prefix: str = "") -> ConfigurationError:
    """The first problem that pydantic found, in our words; `known` are the keys that may have been meant."""
    problem = error.errors(include_url=False, include_context=False)[0]
    key = ".".join(str(part) for part in (prefix, *problem["loc"]) if part != "")
    if problem["type"] == "extra_forbidden":
        first = next(iter(cast("dict[str, Any]", given)), "") if isinstance(given := problem["input"], dict) else ""
        meant = suggestion(key, known) or (suggestion(f"{key}.{first}", known) if first else "")
        return ConfigurationError(key, f"is no setting{meant}")
    if problem["type"] == "model_type":
        return ConfigurationError(key, "is a section: its settings stand below it, such as store.url")
    text = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return ConfigurationError(key, text)


def suggestion(key: str, known: Iterable[str]) -> str:
    """What was probably meant by a key, or a variable, that is no setting."""
    names = {_plain(each): each for each in known}
    nearest = _meant(_plain(key), list(names))
    return f"; did you mean {' or '.join(names[each] for each in nearest)}?" if nearest else ""


def _plain(key: str) -> str:
    return _LLM.sub("model", key.lower().removeprefix("reactor_memory_").replace("__", "."))


def _meant(key: str, known: list[str]) -> list[str]:
    """The same name elsewhere, or another one that ends in the same word: it beats a similar spelling."""
    section, _, name = key.rpartition(".")
    last = name.rpartition("_")[2]
    alike = [each for each in known if "." in each and _words(each)[-1] == last]
    if elsewhere := [each for each in alike if section and each.rpartition(".")[2] == name]:
        is_section = any(each.startswith(f"{section}.") for each in known)
        return _closest(key, elsewhere, MOST_SUGGESTED if is_section else 1)
    here = [each for each in alike if each.startswith(f"{section}.")]
    if here:
        return _closest(key, here, 1)
    if holding := [each for each in alike if {*_words(key)} <= {*_words(each)}]:
        return _closest(key, holding, MOST_SUGGESTED)
    if of_models := [each for each in alike if each.startswith("models.")]:
        return [min(of_models, key=len)]
    sections = {each.partition(".")[0] for each in known}
    if not section or difflib.get_close_matches(section, sections, n=1, cutoff=0.75):
        return difflib.get_close_matches(key, known, n=1)
    return _closest(key, alike, MOST_SUGGESTED) or difflib.get_close_matches(key, known, n=1)


def _words(key: str) -> list[str]:
    return key.replace(".", "_").split("_")


def _closest(key: str, among: list[str], most: int) -> list[str]:
    return difflib.get_close_matches(key, among, n=most, cutoff=0)
