"""Parts of plug-ins: they fit their plug point, stand in order, wrap others, and have options of their own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import BaseModel, Field

from reactor_memory import open_memory
from reactor_memory.errors import ConfigurationError, PluginError
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.own_parts import OWN_PARTS
from reactor_memory.wiring.part_shapes import PORTS, defect_of
from reactor_memory.wiring.plugins import PLUG_POINTS, Given, Plugin, evaluate
from tests.scenes.tables import each_row


class Counter:
    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


class Summarizer:
    name = "loud"
    prompt_version = "1"
    condenser = None

    async def summarize(self, messages: Sequence[Any], *, known: Any = None) -> Any: ...

    async def aclose(self) -> None: ...


class NoCount:
    name = "words"


class AwaitedCount(Counter):
    async def count(self, text: str) -> int:  # type: ignore[override]
        return 1


class CountOfNothing(Counter):
    def count(self) -> int:  # type: ignore[override]
        return 1


class NoName:
    def count(self, text: str) -> int:
        return 1


class AtOnce(Summarizer):
    def summarize(self, messages: Sequence[Any], *, known: Any = None) -> Any: ...


class Unknowing(Summarizer):
    async def summarize(self, messages: Sequence[Any]) -> Any: ...  # type: ignore[override]


class Unclosed(Summarizer):
    aclose = None  # type: ignore[assignment]


class WithMore(Counter):
    def count(self, text: str, quickly: bool = True, **more: Any) -> int:
        return 1


class Delegating:
    name = "all"

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **more: 1


@each_row(
    "plug_point, part, defect",
    [
        ("token_counter", Counter(), ""),
        ("token_counter", WithMore(), ""),
        ("token_counter", Delegating(), ""),
        ("token_counter", NoCount(), "it has no method count(text) (TokenCounter wants it)"),
        ("token_counter", AwaitedCount(), "count must not be asynchronous (TokenCounter wants it)"),
        ("token_counter", CountOfNothing(), "count does not take (text): too many positional arguments"),
        ("token_counter", NoName(), "it has no attribute name"),
        ("summarizer", Summarizer(), ""),
        ("summarizer", AtOnce(), "summarize must be asynchronous"),
        ("summarizer", Unknowing(), "summarize does not take (messages, *, known=Known()): got an unexpected keyword"),
        ("summarizer", Unclosed(), "it has no method aclose()"),
        ("summarizer", "text", "it has no attribute name"),
        ("redactor", str.upper, ""),
        ("redactor", "text", "it cannot be called"),
        ("redactor", lambda: "", "it does not take (text)"),
        ("clock", lambda: 1, ""),
        ("clock", lambda now: 1, "it does not take ()"),
        ("strategy", lambda request: None, "it has no attribute reads_summaries"),
        ("embedder", Counter(), "it has no attribute dimensions"),
        ("message_store", Counter(), "it has no method open()"),
    ],
)
def test_what_does_not_fit_is_named(plug_point: str, part: object, defect: str) -> None:
    found = defect_of(part, plug_point)
    assert found.startswith(defect)
    assert bool(found) == bool(defect)


def test_every_plug_point_has_a_port() -> None:
    assert tuple(PORTS) == PLUG_POINTS
    settings = Settings(store={"url": "memory://"})  # type: ignore[arg-type]
    for plug_point, name in (("token_counter", "estimate"), ("summarizer", "extractive"), ("strategy", "take_last")):
        assert defect_of(OWN_PARTS.provides[plug_point][name](settings), plug_point) == ""  # type: ignore[operator]


PLUGINS: dict[str, Plugin] = {}


def announced(*plugins: Plugin, settings: Settings | None = None) -> Any:
    """What is available beside the library when packages announce these plug-ins."""
    PLUGINS.clear()
    for each in plugins:
        PLUGINS[each.name] = each
        setattr(sys.modules[__name__], f"plugin_{each.name}", each)
    entry_points = [
        EntryPoint(name=each.name, value=f"{__name__}:plugin_{each.name}", group="reactor_memory.plugins")
        for each in plugins
    ]
    return evaluate([OWN_PARTS, *entry_points], settings or Settings())


def counting(part: Any) -> dict[str, Any]:
    return {"token_counter": {"words": lambda settings: part}}


def test_what_does_not_fit_is_refused_when_made() -> None:
    report = announced(Plugin(name="odd", provides=counting(NoCount())))
    told = rf"plug-in odd \({__name__}:plugin_odd\): its token_counter words does not fit: it has no method count"
    with pytest.raises(PluginError, match=told):
        report.factory("token_counter", "words", key="tokens.counter")(Settings())


class Loud:
    """Wraps a counter."""

    def __init__(self, settings: Settings, *, inner: Any, options: LoudOptions | None = None) -> None:
        self.inner = inner
        self.times = options.times if options else 2
        self.name = f"{inner.name} x {self.times}"

    def count(self, text: str) -> int:
        return self.times * self.inner.count(text)


class LoudOptions(BaseModel):
    times: int = Field(default=3, ge=1)
    signature: str = "!"


def made(report: Any, name: str = "estimate", settings: Settings | None = None) -> Any:
    return report.factory("token_counter", name, key="tokens.counter")(settings or Settings())


def test_a_factory_that_wraps_gets_the_part_in_force() -> None:
    first = Plugin(name="first", wraps={"token_counter": Loud})
    second = Plugin(name="second", order=1, wraps={"token_counter": Loud})
    inner = made(announced())
    assert made(announced(first)).count("word word") == 2 * inner.count("word word")
    both = made(announced(second, first))
    assert both.count("word word") == 4 * inner.count("word word")
    assert both.name == f"{inner.name} x 2 x 2"


def test_what_wraps_has_to_fit_too() -> None:
    odd = Plugin(name="odd", wraps={"token_counter": lambda settings, inner: NoCount()})
    with pytest.raises(PluginError, match="its token_counter that wraps does not fit: it has no method count"):
        made(announced(odd))


def options(**given: Any) -> Settings:
    return Settings(plugins={"options": {"loud": given}})  # type: ignore[arg-type]


@each_row("given, times", [({}, 3), ({"times": 5}, 5), ({"times": "4"}, 4), ({"signature": "?"}, 3)])
def test_options_come_as_the_model_that_was_declared(given: dict[str, Any], times: int) -> None:
    plugin = Plugin(name="loud", wraps={"token_counter": Loud}, options=LoudOptions)
    settings = options(**given)
    assert made(announced(plugin, settings=settings), settings=settings).times == times


@each_row(
    "given, told",
    [
        ({"tims": 5}, "plugins.options.loud.tims: is no option of this plug-in; did you mean times?"),
        ({"signatur": 5}, "plugins.options.loud.signatur: is no option of this plug-in; did you mean signature?"),
        ({"zzz": 5}, "plugins.options.loud.zzz: is no option of this plug-in; there are: times, signature"),
        ({"times": 0}, "plugins.options.loud.times: Input should be greater than or equal to 1"),
        ({"times": "s3cret"}, "plugins.options.loud.times: Input should be a valid integer"),
    ],
)
def test_wrong_options_are_refused_by_name(given: dict[str, Any], told: str) -> None:
    plugin = Plugin(name="loud", wraps={"token_counter": Loud}, options=LoudOptions)
    with pytest.raises(ConfigurationError) as refused:
        announced(plugin, settings=options(**given))
    assert str(refused.value).startswith(told)
    assert "s3cret" not in str(refused.value)
    left_out = Plugin(name="loud", options=LoudOptions, requires_packages=("no-such-package",))
    assert not announced(left_out, settings=options(**given)).conditions[-1].selected


@each_row(
    "conditions, selected, reason",
    [
        (
            {"requires_settings": {"plugins.options.one.key": Given.SET}},
            False,
            "needs plugins.options.one.key to be set",
        ),
        ({"requires_settings": {"plugins.options.one.key": Given.MISSING}}, True, "conditions met"),
        ({"requires_settings": {"store.url": Given.MISSING}}, False, "needs store.url to be not set"),
        ({"requires_settings": {"store.url": Given.SET}}, True, "conditions met"),
        ({"missing_packages": ("msgspec",)}, False, "wants the package msgspec to be missing, and it is installed"),
        ({"missing_packages": ("no-such-package",)}, True, "conditions met"),
        ({"requires_parts": ("summarizer.extractive",)}, True, "conditions met"),
        ({"requires_parts": ("summarizer.loud",)}, False, "needs the part summarizer.loud, which nobody before it"),
        ({"on_missing": ("summarizer.loud",)}, True, "conditions met"),
        ({"on_missing": ("token-counter.words",)}, True, "conditions met"),
        ({"on_missing": ("summarizer.extractive",)}, False, "wants the part summarizer.extractive to be missing"),
    ],
)
def test_conditions_may_be_negative_or_about_parts(conditions: dict[str, Any], selected: bool, reason: str) -> None:
    found = announced(Plugin(name="one", **conditions)).conditions[-1]
    assert (found.selected, found.reason.startswith(reason)) == (selected, True), found


def test_what_comes_later_sees_the_parts_of_what_comes_before() -> None:
    words = Plugin(name="words", provides=counting(Counter()))
    stopgap = Plugin(
        name="stopgap", provides=counting(WithMore()), on_missing=("token_counter.words",), after=("words",)
    )
    assert isinstance(made(announced(stopgap, words), "words"), Counter)
    assert isinstance(made(announced(stopgap), "words"), WithMore)
    needing = Plugin(name="needing", requires_parts=("token_counter.words",), before=("stopgap",), order=-5)
    assert [each.selected for each in announced(stopgap, needing).conditions] == [True, True, False]


@each_row(
    "first, second, winner",
    [
        ({"order": 5}, {"order": 1}, Counter),
        ({"order": 5}, {"order": 1, "after": ("first",)}, WithMore),
        ({"order": 5, "before": ("second",)}, {"order": 1}, WithMore),
        ({"after": ("second",)}, {}, Counter),
    ],
)
def test_names_decide_the_order_before_numbers(first: dict[str, Any], second: dict[str, Any], winner: type) -> None:
    one = Plugin(name="first", provides=counting(Counter()), **first)
    other = Plugin(name="second", provides=counting(WithMore()), **second)
    for each in ((one, other), (other, one)):
        assert type(made(announced(*each), "words")) is winner


def test_plug_ins_behind_each_other_are_refused() -> None:
    plugins = Plugin(name="one", after=("two",)), Plugin(name="two", after=("one",))
    with pytest.raises(PluginError, match="stand behind each other, by before and after: one, two"):
        announced(*plugins)


@pytest.mark.anyio
async def test_no_memory_opens_with_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    announced(Plugin(name="odd", provides={"summarizer": {"odd": lambda settings: AtOnce()}}))
    found = (EntryPoint(name="odd", value=f"{__name__}:plugin_odd", group="reactor_memory.plugins"),)
    monkeypatch.setattr("reactor_memory.wiring.stores.discover", lambda: found)
    with pytest.raises(PluginError, match="summarize must be asynchronous"):
        async with open_memory(Settings(store={"url": "memory://"}, summary={"provider": "odd"})):  # type: ignore[arg-type]
            pass


@pytest.mark.anyio
async def test_a_summarizer_wraps_the_one_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shouting(Summarizer):
        def __init__(self, settings: Settings, *, inner: Any, options: LoudOptions) -> None:
            self.inner, self.sign, self.name = inner, options.signature, f"loud-{inner.name}"

        async def summarize(self, messages: Sequence[Any], *, known: Any = None) -> Any:
            found = await self.inner.summarize(messages)
            return replace(found, narrative=f"heard{self.sign}")

    announced(Plugin(name="loud", wraps={"summarizer": Shouting}, options=LoudOptions))
    found = (EntryPoint(name="loud", value=f"{__name__}:plugin_loud", group="reactor_memory.plugins"),)
    monkeypatch.setattr("reactor_memory.wiring.stores.discover", lambda: found)
    async with open_memory(Settings(store={"url": "memory://"})) as memory:  # type: ignore[arg-type]
        assert memory.container.summarizer().name == "loud-extractive"
