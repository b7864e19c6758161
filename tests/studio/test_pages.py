"""Every page in a real browser: nothing fails, nothing leaves the machine, everybody can use it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.studio.conftest import Opened, entered, studio, watched
from tests.studio.stores import HOSTILE, fill, fill_large

Look = Callable[..., Any]

PAGES = {
    "sessions": "/",
    "no session found": "/?q=nothing-like-it",
    "session": "/session?id=trip",
    "facts": "/session?id=trip&show=facts",
    "gone": "/session?id=trip&show=everything",
    "message": "/session?id=trip&seq=3#m3",
    "hostile": "/session?id=hostile",
    "context": "/context?id=trip&budget=1500&message=What+was+my+order+number%3F",
    "context, take-last": "/context?id=trip&budget=1500&beside=take_last",
    "context, JSON": "/context?id=trip&form=anthropic",
    "replay": "/context?id=trip&turn=61&beside=before",
    "chat": "/chat?id=trip",
    "evaluate": "/eval?id=trip",
    "problem": "/session?id=nobody",
}
SERIOUS = {"serious", "critical"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_sound(look: Look, looking: Opened, name: str, width: int, scheme: str) -> None:
    with look(width=width, scheme=scheme) as (page, problems):
        page.goto(looking.base + PAGES[name])
        page.wait_for_load_state("networkidle")
        if name == "problem":  # the browser reports the status of the page itself
            problems[:] = [each for each in problems if "404" not in each]
        assert problems == []
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in SERIOUS] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_fact_marks_the_words_that_it_was_taken_from(look: Look, looking: Opened) -> None:
    with look() as (page, problems):
        page.goto(f"{looking.base}/session?id=trip")
        page.locator("#aside .facts a", has_text="reference").first.click()
        expect(page.locator("#aside blockquote mark")).to_be_visible()
        expect(page.locator(".message.chosen")).to_have_count(1)
        chosen = page.url
        assert "anchor=" in chosen
        page.reload()
        expect(page.locator(".message.chosen")).to_have_count(1)
        page.go_back()
        expect(page.locator("#aside h2")).to_have_text("Facts that hold")
        assert problems == []


def test_what_the_next_context_shows_is_marked_later(look: Look, looking: Opened) -> None:
    with look() as (page, problems):
        page.goto(f"{looking.base}/session?id=trip&seq=3#m3")
        expect(page.locator("#m120 .state.window")).to_be_visible()
        expect(page.locator(".message.chosen")).to_have_count(1)
        assert problems == []


def test_a_fact_elsewhere_opens_the_page_of_its_message(browser: Browser, tmp_path: Path) -> None:
    with (
        studio(fill_large(tmp_path / "large.db", messages=300)) as opened,
        watched(browser, opened, entered(browser, opened)) as (page, problems),
    ):
        page.goto(f"{opened.base}/session?id=large")
        assert page.locator("#m1").count() == 0
        page.locator("#aside .facts a").first.click()
        expect(page.locator(".message.chosen mark")).to_be_visible()
        assert int(page.locator(".message.chosen a.seq").inner_text()) <= 100
        assert problems == []


def test_a_message_shows_what_was_taken_from_it(look: Look, looking: Opened) -> None:
    with look() as (page, _):
        page.goto(f"{looking.base}/session?id=trip")
        page.locator("#m3 a.seq").click()
        expect(page.locator("#aside h2")).to_have_text("Message 3")
        expect(page.locator("#aside .facts").first).to_contain_text("AB-0")
        expect(page.locator("#m3")).to_have_class("message tool chosen")


def test_the_budget_changes_the_context_and_the_address(look: Look, looking: Opened) -> None:
    with look() as (page, problems):
        page.goto(f"{looking.base}/context?id=trip&budget=1500")
        number = page.locator("input[name=budget]")
        number.fill("3000")
        expect(page.locator("figcaption")).to_contain_text("of 3,000 tokens")
        assert "budget=3000" in page.url
        page.locator("input[name=message]").fill("What about QX-1003?")
        expect(page.locator("#context")).to_contain_text("What about QX-1003?")
        assert page.evaluate("document.activeElement.name") == "message"
        assert problems == []


def test_a_turn_of_the_past_is_shown_byte_for_byte(look: Look, looking: Opened) -> None:
    with look() as (page, _):
        page.goto(f"{looking.base}/context?id=trip&turn=61")
        expect(page.locator(".done")).to_contain_text("Byte for byte what the model saw")
        page.get_by_role("link", name="Turn before").click()
        expect(page.locator(".done")).to_contain_text("message 57")


def test_hostile_text_stays_text(look: Look, looking: Opened) -> None:
    with look() as (page, problems):
        page.goto(f"{looking.base}/session?id=hostile")
        shown = page.locator("#m1 .text").inner_text()
        assert shown == HOSTILE.replace("\N{RIGHT-TO-LEFT OVERRIDE}", "\N{REPLACEMENT CHARACTER}")
        assert "996,000 more characters" in page.locator("#m3 .text").inner_text()
        for path in ("/", "/context?id=hostile", "/chat?id=hostile", f"/?q={HOSTILE[:25]}"):
            page.goto(looking.base + path)
            assert page.locator("main script, main img").count() == 0
        assert problems == []


def test_it_works_with_the_keyboard_alone(look: Look, looking: Opened) -> None:
    with look() as (page, _):
        page.goto(f"{looking.base}/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "To the content"
        page.keyboard.press("/")
        page.keyboard.type("hostile")
        page.keyboard.press("Enter")
        page.wait_for_url("**/?q=hostile")
        assert page.locator("tbody tr").count() == 1


def test_it_works_without_the_module(look: Look, looking: Opened) -> None:
    with look(java_script_enabled=False) as (page, _):
        page.goto(f"{looking.base}/session?id=trip")
        page.get_by_role("link", name="Show the facts").click()
        page.locator("#aside .facts a").first.click()
        expect(page.locator(".message.chosen mark")).to_be_visible()
        page.goto(f"{looking.base}/context?id=trip&budget=1500")
        page.locator("input[name=message]").fill("And QX-1004?")
        page.get_by_role("button", name="Show").click()
        expect(page.locator("#context")).to_contain_text("And QX-1004?")


def test_an_evaluation_draws_curves(look: Look, looking: Opened) -> None:
    with look() as (page, problems):
        page.goto(f"{looking.base}/eval?id=trip")
        page.get_by_role("button", name="Evaluate").first.click()
        expect(page.locator(".plot svg")).to_be_visible(timeout=120_000)
        expect(page.locator("#result table")).to_contain_text("take-last")
        assert problems == []


@pytest.fixture
def writing(browser: Browser, tmp_path: Path) -> Any:
    with studio(fill(tmp_path / "own.db"), "--write") as opened:
        yield opened, entered(browser, opened)


def _ask(page: Page, button: str) -> None:
    page.get_by_role("button", name=button, exact=True).click()
    page.get_by_role("button", name=f"Yes, {button.lower()}").click()


def test_what_is_changed_is_asked_about_first(browser: Browser, writing: tuple[Opened, Any]) -> None:
    opened, state = writing
    with watched(browser, opened, state) as (page, problems):
        page.goto(f"{opened.base}/session?id=trip&seq=1")
        _ask(page, "Pin")
        expect(page.locator(".done")).to_have_text("Pinned.")
        expect(page.locator("#m1 .state.pinned")).to_be_visible()
        page.locator("#aside .facts a", has_text="reference").first.click()
        page.locator("#aside input[name=value]").fill("AB-999")
        _ask(page, "Correct")
        expect(page.locator("#aside")).to_contain_text("AB-999")
        page.goto(f"{opened.base}/session?id=trip&seq=5")
        _ask(page, "Erase")
        expect(page.locator("#m5")).to_contain_text("nothing of it is left")
        page.goto(f"{opened.base}/session?id=hostile&seq=3")
        _ask(page, "Withdraw")
        expect(page.locator("#m3")).to_contain_text("nothing of it is left")
        assert problems == []


def test_a_chat_streams_and_goes_on_after_a_reload(browser: Browser, writing: tuple[Opened, Any]) -> None:
    opened, state = writing
    with watched(browser, opened, state) as (page, problems):
        page.goto(f"{opened.base}/chat?user=bob")
        page.locator("textarea").fill("My order number is QX-4711.")
        page.keyboard.press("Enter")
        expect(page.locator(".message.assistant")).to_contain_text("You said: My order number is QX-4711.")
        expect(page.locator("#log")).to_contain_text("context of this turn")
        page.reload()
        expect(page.locator(".message.user")).to_contain_text("QX-4711")
        page.locator("textarea").fill("And again?")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".message.user .look")).to_have_count(2)
        page.get_by_role("link", name="context of this turn").last.click()
        expect(page.locator(".done")).to_contain_text("Byte for byte")
        page.goto(f"{opened.base}/?q=bob")
        expect(page.locator("tbody tr")).to_have_count(1)
        assert problems == []


FIRST_CONTENTFUL_PAINT = """
new Promise((done) => new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint")
    .forEach((entry) => done(entry.startTime))).observe({type: "paint", buffered: true}))
"""
"""When it was, in milliseconds; the page may be loaded before it is painted."""


PAGE_WITHOUT_DATA = 0.2
"""Seconds of a page that reads nothing, where nothing else runs: slower machines have as much more for the others."""


def test_large_sessions_and_stores_are_shown_at_once(browser: Browser, tmp_path: Path) -> None:
    """10,000 messages in one session, 100,000 in the store."""
    with studio(fill_large(tmp_path / "large.db", messages=10_000, others=450)) as opened:
        state = entered(browser, opened)
        with watched(browser, opened, state) as (page, problems):
            page.goto(f"{opened.base}/eval")
            busy = max(1.0, _seconds(page, f"{opened.base}/eval") / PAGE_WITHOUT_DATA)
            first = _seconds(page, f"{opened.base}/")
            session = _seconds(page, f"{opened.base}/session?id=large")
            painted = page.evaluate(FIRST_CONTENTFUL_PAINT) / 1000
            answered = page.evaluate("performance.getEntriesByType('navigation')[0].responseStart") / 1000
            assert page.locator(".message").count() == 200
            page.get_by_role("link", name="Earlier").click()
            expect(page.locator("#m9601")).to_be_visible()
            print(f"busy {busy:.1f}: first page {first:.2f} s, session {session:.2f} s")
            print(f"painted {painted - answered:.2f} s after the first byte")
            assert first < 1.0 * busy
            assert painted - answered < 0.5 * busy
            assert problems == []


def _seconds(page: Page, address: str) -> float:
    begin = time.perf_counter()
    page.goto(address)
    return time.perf_counter() - begin
