"""`reactor-memory studio` over HTTP: who is let in, what it refuses, and that looking changes nothing. What browsers
make of its pages is in tests/studio.
"""

from __future__ import annotations

import errno
import html
import re
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, cast

import anyio
import httpx
import msgspec
import pytest

from reactor_memory import Memory, Message, Settings, ToolCall, open_memory, sync
from reactor_memory.studio import hosts
from reactor_memory.studio.app import create_app
from reactor_memory.studio.measuring import Evaluations
from reactor_memory.studio.rendering import Pages
from reactor_memory.studio.session_page import PAGE
from reactor_memory.studio.studio import Studio
from tests.acceptance.conftest import forget_settings, started_commands
from tests.scenes import hurting_texts
from tests.scenes.loop_watch import free_loop
from tests.scenes.tables import each_row

SETTINGS = {"context": {"record": "turns"}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studio") / "agent.db"
    anyio.run(_fill, path)
    return path


async def _fill(path: Path) -> None:
    async with open_memory(Settings(store={"url": f"sqlite:///{path}"}, **SETTINGS)) as memory:
        for number in range(20):
            async with memory.turn("trip", f"My order number is QX-{number}.", user_id="ann", budget=600) as turn:
                turn.answer(f"Noted: QX-{number}.")
        await memory.save_history("open", ["Hello."])
        await memory.drain()


@pytest.fixture(scope="module")
def reading(store: Path) -> Iterator[httpx.Client]:
    yield from _served("studio", "--store", store)


@pytest.fixture(scope="module")
def writing(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    yield from _served(
        "studio", "--store", shutil.copy(store, tmp_path_factory.mktemp("written") / "agent.db"), "--write"
    )


@pytest.fixture
def browser(reading: httpx.Client) -> Iterator[httpx.Client]:
    """One that has entered. The Studio is the same for all tests, and only looks."""
    yield from _again(reading)


@pytest.fixture
def writer(writing: httpx.Client) -> Iterator[httpx.Client]:
    """The same, where something may be changed: each test changes what no other one asks for."""
    yield from _again(writing)


def _served(*arguments: object) -> Iterator[httpx.Client]:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        forget_settings(patch)
        patch.chdir(folder)  # where no file of settings lies
        with started_commands() as start:
            yield from _entered(start(*arguments))


def _again(entered: httpx.Client) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=entered.base_url, headers={"origin": entered.headers["origin"]}) as client:
        client.cookies.update(entered.cookies)
        yield client


def _entered(process: subprocess.Popen[str]) -> Iterator[httpx.Client]:
    entry = _address(process)
    base = entry.partition("/enter")[0]
    with httpx.Client(base_url=base, headers={"origin": base}) as client:
        assert client.get(entry).status_code == 200
        yield client


def from_page(client: httpx.Client, form: dict[str, str] | None = None) -> dict[str, str]:
    """A form as a page of the Studio sends it."""
    token = re.search(r'name="page_token" value="([^"]+)"', client.get("/eval").text)[1]  # type: ignore[index]
    return {"page_token": token, **(form or {})}


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return next(line.strip() for line in process.stdout if line.startswith("http://"))


def test_the_address_opens_once_and_each_run_has_its_host(
    store: Path, browser: httpx.Client, start: Callable[..., subprocess.Popen[str]]
) -> None:
    entry = _address(start("studio", "--store", store))
    base = entry.partition("/enter")[0]
    assert len({httpx.URL(base).host, browser.base_url.host, "127.0.0.1", "localhost"}) == 4
    assert httpx.get(f"{base}/").status_code == 403
    assert httpx.get(f"{base}/enter?token=guessed").status_code == 403
    with httpx.Client() as first:
        assert first.get(entry).status_code == 200
        assert first.get(f"{base}/").status_code == 200
    again = httpx.get(entry)
    assert again.status_code == 403
    assert "was used" in again.text
    assert "studio-" not in again.headers.get("set-cookie", "")


def test_it_answers_to_its_own_name_only(browser: httpx.Client) -> None:
    own, port = browser.base_url.host, browser.base_url.port
    others = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "x.localhost", f"{own}.evil.example")]
    for host in (*others, "evil.example", "127.0.0.1", "localhost:1", own, f"{own}:1", ""):
        assert browser.get("/", headers={"host": host}).status_code == 421


def test_every_answer_forbids_what_pages_of_others_could_do(browser: httpx.Client) -> None:
    for path in ("/", "/static/studio.js", "/session?id=nobody"):
        headers = browser.get(path).headers
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    cookie = next(iter(browser.cookies.jar))
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "Strict"


@pytest.mark.parametrize("origin", [None, "http://evil.example", "http://127.0.0.1:1", "null"])
def test_only_its_own_pages_may_change_something(writer: httpx.Client, origin: str | None) -> None:
    del writer.headers["origin"]
    headers = {} if origin is None else {"origin": origin}
    form = from_page(writer, {"id": "trip", "text": "I was not here."})
    refused = writer.post("/chat", data=form, headers=headers)
    assert refused.status_code == 403
    assert "I was not here" not in writer.get("/session?id=trip").text


@each_row(
    "path, form",
    [
        ("/chat", {"id": "trip", "text": "I was not here."}),
        ("/session/act", {"id": "trip", "act": "erase", "seq": "5", "confirmed": "true"}),
        ("/session/act", {"id": "trip", "act": "retract", "anchor": "a", "key": "k"}),
        ("/eval/session", {"id": "trip"}),
        ("/eval/file", {}),
        ("/nothing", {}),
    ],
)
@each_row("token", [None, "", "guessed", "é"])
def test_a_form_without_the_token_of_a_page_is_refused(
    writer: httpx.Client, path: str, form: dict[str, str], token: str | None
) -> None:
    sent = form if token is None else {"page_token": token, **form}
    refused = writer.post(path, data=sent, files={"file": ("x", b"{}")} if path == "/eval/file" else None)
    assert refused.status_code == (404 if path == "/nothing" else 403)
    assert "I was not here" not in writer.get("/session?id=trip").text
    assert "My order number is QX-2." in writer.get("/session?id=trip").text


@each_row("knows_names, has_addresses", [(True, True), (False, True), (False, False)])
def test_a_host_is_a_name_or_an_address(knows_names: bool, has_addresses: bool) -> None:
    def create(address: tuple[str, int]) -> socket.socket:
        if not has_addresses and address[0] != hosts.LOOPBACK:
            raise OSError(errno.EADDRNOTAVAIL, "as on macOS")
        return create_server(address)

    create_server = socket.create_server
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hosts, "_resolves", lambda _: knows_names)
        patch.setattr(hosts.socket, "create_server", create)
        found = [hosts.bound(0) for _ in range(3)]
    for host, listener in found:
        with listener:
            is_name = knows_names or not has_addresses
            assert host.endswith(".localhost") == is_name
            assert listener.getsockname()[0] == (hosts.LOOPBACK if is_name else host)
            assert host != hosts.LOOPBACK
    assert len({host for host, _ in found}) == len(found)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/chat", {"id": "trip", "text": "Hello"}),
        ("/session/act", {"id": "trip", "act": "erase", "seq": "1", "confirmed": "true"}),
        ("/session/act", {"id": "trip", "act": "pin", "seq": "1"}),
    ],
)
def test_without_write_it_only_looks(browser: httpx.Client, path: str, form: dict[str, str]) -> None:
    refused = browser.post(path, data=from_page(browser, form))
    assert refused.status_code == 403
    assert "studio --write" in refused.text


def test_looking_changes_nothing(store: Path, browser: httpx.Client) -> None:
    before = _everything(store)
    for path in (
        "/",
        "/?q=qx",
        "/session?id=trip",
        "/session?id=trip&seq=3",
        "/session?id=trip&show=everything",
        "/context?id=trip&budget=333&message=What+now%3F",
        "/context?id=trip&turn=11&beside=before",
        "/context?id=trip&beside=take_last&form=gemini",
        "/chat?id=trip",
        "/eval?id=trip",
    ):
        assert browser.get(path).status_code == 200, path
    assert _everything(store) == before


def _everything(store: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(store)) as connection:
        every = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = [name for name in every if name != "recall_terms"]  # recall_postings tells what it holds
        return {table: sorted(map(repr, connection.execute(f'SELECT * FROM "{table}"'))) for table in tables}


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/session?id=nobody", 404, "no session with this id"),
        ("/session", 400, "id"),
        ("/session?id=trip&seq=999", 400, "ends with 40"),
        ("/session?id=trip&anchor=no&key=thing", 400, "no fact has this anchor and key"),
        ("/context?id=trip&budget=0", 400, "budget"),
        ("/context?id=trip&budget=many", 400, "budget"),
        ("/context?id=trip&form=yaml", 400, "form"),
        ("/context?id=trip&turn=999", 400, "ends with message 40"),
        ("/eval?run=gone", 404, "newest 20 results"),
        ("/nothing", 404, "Not Found"),
    ],
)
def test_wrong_input_is_told_on_a_page(browser: httpx.Client, path: str, status: int, told: str) -> None:
    answer = browser.get(path)
    assert answer.status_code == status
    assert told in re.search(r'class="problem"[^>]*>([^<]*)<', answer.text)[1]  # type: ignore[index]


def test_provider_json_is_what_the_library_gives(browser: httpx.Client) -> None:
    page = browser.get("/context?id=trip&form=openai&message=Well%3F").text
    assert "&#34;role&#34;: &#34;user&#34;" in page
    assert "&#34;content&#34;: &#34;Well?&#34;" in page


@each_row(
    ("message", "note"),
    [
        ("What+was+my+order+number%3F", "recall: "),
        ("Thanks%2C+fine.", "recall: not asked"),
        ("Is+QX-3+paid%3F", "recall: "),
    ],
)
def test_a_context_says_what_recall_did(browser: httpx.Client, message: str, note: str) -> None:
    assert note in browser.get(f"/context?id=trip&budget=250&message={message}").text
    assert "recall: " not in browser.get("/context?id=trip&budget=250").text


def test_an_act_waits_until_it_is_confirmed(writer: httpx.Client) -> None:
    form = from_page(writer, {"id": "trip", "act": "erase", "seq": "3"})
    asked = writer.post("/session/act", data=form)
    assert "Erase this message" in asked.text
    assert form["page_token"] in asked.text
    assert "My order number is QX-1." in writer.get("/session?id=trip").text
    done = writer.post("/session/act", data=form | {"confirmed": "true"}, follow_redirects=True)
    assert "Erased." in done.text
    assert "My order number is QX-1." not in done.text


def test_an_unknown_act_names_those_there_are(writer: httpx.Client) -> None:
    refused = writer.post("/session/act", data=from_page(writer, {"id": "trip", "act": "burn"}))
    assert refused.status_code == 400
    assert "pin, unpin, correct, retract, withdraw, erase" in refused.text


def test_a_chat_is_stored_and_answers_without_a_script(writer: httpx.Client) -> None:
    form = from_page(writer, {"id": "new", "user": "bob", "text": "It is QX-77."})
    page = writer.post("/chat", data=form, follow_redirects=True).text
    assert "You said: It is QX-77." in page
    assert "bob" in writer.get("/?q=bob").text


def test_a_chat_streams_pieces(writer: httpx.Client) -> None:
    headers = {"accept": "text/event-stream"}
    form = from_page(writer, {"id": "trip", "text": "Well?"})
    with writer.stream("POST", "/chat", data=form, headers=headers) as answer:
        lines = list(answer.iter_lines())
    assert lines.count("event: piece") > 3
    assert "event: done" in lines


def test_a_file_is_evaluated(browser: httpx.Client) -> None:
    sessions = Path("reactor_memory/data/orders.jsonl.gz")
    content = (Path(__file__).parents[2] / sessions).read_bytes()
    started = browser.post("/eval/file", data=from_page(browser), files={"file": ("orders.jsonl.gz", content)})
    assert started.status_code == 303
    page = browser.get(started.headers["location"]).text
    assert "orders.jsonl.gz" in page
    assert "<progress" in page or "Reactor Memory" in page


def test_a_file_that_holds_no_sessions_is_refused(browser: httpx.Client) -> None:
    refused = browser.post("/eval/file", data=from_page(browser), files={"file": ("x.jsonl", b"not JSON\n")})
    assert refused.status_code == 400
    assert 'class="problem"' in refused.text
    assert browser.post("/eval/file", data=from_page(browser), files={"file": ("x.jsonl", b"")}).status_code == 400


def test_a_store_that_is_not_there_is_not_made(folder: Path, run: Callable[..., object]) -> None:
    done = run("studio", "--store", folder / "missing.db")
    assert "there is no database" in done.err  # type: ignore[attr-defined]
    assert not (folder / "missing.db").exists()


@pytest.mark.anyio
async def test_the_operator_sees_and_finds_the_sessions_of_everybody(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "agent.db") as memory:
        await memory.save_history("a", [Message.user("Hello")], user_id="ann")
        await memory.save_history("B_1", [Message.user("Hello")], user_id="bob%")
        found = await memory.overview.sessions(text="B%")
        assert [each.session_id for each in found.sessions] == ["B_1"]
        assert [each.session_id for each in (await memory.overview.sessions(text="_")).sessions] == ["B_1"]
        assert len((await memory.overview.sessions(limit=1)).sessions) == 1
        assert await memory.overview.owner_of("a") == "ann"
        fork = await memory.fork("a", at_seq=1, user_id="ann")
        assert [each.session_id for each in await memory.overview.forks("a")] == ["a", fork.session_id]


def test_the_application_uses_nothing_that_its_framework_will_drop() -> None:
    """Warnings are errors in these tests; the other tests run it in a process of its own."""
    parts: Any = None
    assert create_app(Studio(memory=parts, pages=parts, writes=False, evaluations=parts)).routes


def test_context_says_which_settings_are_not_those_of_the_agent(
    store: Path, start: Callable[..., subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__ENABLED", "false")
    opened = _entered(start("studio", "--store", store))
    page = next(opened).get("/context?id=trip").text
    assert "Settings unlike the agent&#39;s: 1" in page or "Settings unlike the agent's: 1" in page
    assert "summary.enabled: False here (environment), True for the agent" in page


def test_context_under_settings_of_the_agent_says_nothing_of_them(browser: httpx.Client) -> None:
    assert "unlike the agent" not in browser.get("/context?id=trip").text


def test_context_has_the_budget_of_the_last_load(browser: httpx.Client) -> None:
    page = browser.get("/context?id=trip").text
    assert 'name="budget" min="1" max="10000000" step="1" value="600"' in page
    assert "of 600 tokens" in page
    assert "as in the last load" in page
    other = browser.get("/context?id=trip&budget=900").text
    assert "of 900 tokens" in other
    assert "the last load had 600" in other


def test_a_budget_that_is_no_number_is_named(browser: httpx.Client) -> None:
    for given in ("abc", "x7"):
        answer = browser.get(f"/context?id=trip&budget={given}")
        assert answer.status_code == 400
        assert "budget: must be a whole number" in answer.text
        assert "Validation failed" not in answer.text


def test_a_turn_that_shares_no_message_says_so(browser: httpx.Client) -> None:
    pages = [browser.get(f"/context?id=trip&beside=before&turn={seq}").text for seq in (21, 31, 39)]
    assert all("The first 0 of" not in page for page in pages)


@pytest.mark.anyio
async def test_a_page_of_the_timeline_reads_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    async def counted(*arguments: Any, **options: Any) -> tuple[Message, ...]:
        found = await read_messages(*arguments, **options)
        read.append(len(found))
        return found

    async with open_memory(Settings(store={"url": "memory://"}, background={"enabled": False})) as memory:
        await memory.save_history("long", [f"This is remark {number}." for number in range(1, 1001)])
        read_messages = memory.manager.read_messages
        monkeypatch.setattr(memory.manager, "read_messages", counted)
        pages = Pages(store="memory://", writes=False, differences=())
        no_evaluations: Any = None
        app = create_app(Studio(memory=memory, pages=pages, writes=False, evaluations=no_evaluations))
        transport = httpx.ASGITransport(app=cast("Any", app))
        async with httpx.AsyncClient(transport=transport, base_url="http://studio") as client:
            for path, first, last in (
                ("/session?id=long", 801, 1000),
                ("/session?id=long&start=1", 1, 200),
                ("/session?id=long&start=999", 999, 1000),
                ("/session?id=long&start=5000", 1000, 1000),
                ("/session?id=long&start=-7", 1, 200),
                ("/session?id=long&seq=300", 250, 449),
                ("/session?id=long&seq=3&start=900", 1, 200),
                ("/session?id=long&start=401&window=true", 401, 600),
            ):
                read.clear()
                shown = (await client.get(path)).text
                assert [int(seq) for seq in re.findall(r'<li id="m(\d+)"', shown)] == [*range(first, last + 1)], path
                assert sum(read) <= 2 * PAGE + 1, path
            made: list[int] = []
            monkeypatch.setattr(type(memory), "preview", lambda *_, **__: made.append(1))
            assert (await client.get("/session?id=long")).status_code == 200
            assert made == []


@pytest.mark.anyio
async def test_session_shows_the_summaries_of_its_tiers() -> None:
    tiers = {"recent_count": 4, "condensed_count": 4, "auto_threshold": 8}
    async with looked_at_here(history={"strategy": "progressive"}, tiers=tiers) as (memory, client):
        for number in range(10):
            await memory.save_history("s", [Message.user(f"question {number}"), Message.assistant("noted")])
        assert "summaries of messages" not in (await client.get("/session?id=s")).text
        await memory.tiers.summarize("s")
        page = (await client.get("/session?id=s")).text
        assert "2 summaries of messages" in page
        for cells in ("compressed</td><td>1 to 12</td><td>12", "condensed</td><td>13 to 16</td><td>4"):
            assert cells in page


@asynccontextmanager
async def looked_at_here(**sections: Any) -> AsyncIterator[tuple[Memory, httpx.AsyncClient]]:
    """A Studio in this process, without its doorkeeper."""
    settings = Settings(store={"url": "memory://"}, background={"enabled": False}, **sections)
    async with open_memory(settings) as memory, anyio.create_task_group() as tasks:
        pages = Pages(store="memory://", writes=True, differences=())
        app = create_app(Studio(memory=memory, pages=pages, writes=True, evaluations=Evaluations(tasks)))
        transport = httpx.ASGITransport(app=cast("Any", app))
        async with httpx.AsyncClient(transport=transport, base_url="http://studio") as client:
            yield memory, client
        tasks.cancel_scope.cancel()


async def every_page(memory: Memory, client: httpx.AsyncClient, session_id: str, text: str) -> None:
    await memory.save_history(session_id, [Message.user(text), Message.assistant("QX-7"), Message.user(text[:5000])])
    for path, query in (
        ("/", {"q": text[:2000]}),
        ("/session", {"id": session_id}),
        ("/session", {"id": session_id, "seq": "1"}),
        ("/session", {"id": session_id, "show": "facts", "find": text[:2000]}),
        ("/context", {"id": session_id, "message": text[:2000], "budget": "4000"}),
        ("/chat", {"id": session_id}),
    ):
        assert (await client.get(path, params=query)).status_code < 500
    page = (await client.get("/eval")).text
    token = re.search(r'name="page_token" value="([^"]+)"', page)[1]  # type: ignore[index]
    form = {"id": session_id, "page_token": token}
    assert (await client.post("/eval/session", data=form)).status_code in (303, 400)  # there may be nothing to look for
    # Of more the client takes as long to write the form, on the same loop
    assert (await client.post("/chat", data=form | {"text": text[:20_000]})).status_code == 303


@pytest.mark.anyio
@pytest.mark.slow
async def test_no_text_holds_the_loop_of_the_pages() -> None:
    async with looked_at_here() as (memory, client):
        await every_page(memory, client, "first", "Hello")
        for number, text in enumerate(hurting_texts.FEW[:2]):
            async with free_loop():
                await every_page(memory, client, f"hurting-{number}", text)


@pytest.mark.slow
@pytest.mark.anyio
@each_row("kind", hurting_texts.EACH)
async def test_no_kind_of_text_holds_the_loop_of_the_pages(kind: str) -> None:
    async with looked_at_here() as (memory, client):
        await every_page(memory, client, "first", "Hello")
        async with free_loop():
            await every_page(memory, client, kind, hurting_texts.EACH[kind])


def test_the_window_is_marked_by_a_second_request(browser: httpx.Client) -> None:
    page = browser.get("/session?id=trip").text
    assert "state window" not in page
    address = html.unescape(re.search(r'<section id="timeline"[^>]* data-load="([^"]+)"', page)[1])  # type: ignore[index]
    fragment = browser.get(address, headers={"x-fragment": "timeline"}).text
    assert "state window" in fragment
    assert "<html" not in fragment
    assert "data-load" not in fragment


def exchange(number: int, size: int = 300) -> tuple[Message, Message]:
    """A call of a tool and its long result."""
    call = ToolCall(id=f"c{number}", name="read_page", arguments={"page": number})
    body = "".join(f"line {line} of no value\n" for line in range(size // 20))
    return Message.assistant(tool_calls=[call]), Message.tool(f"page {number}\n{body}", tool_call_id=call.id)


def test_a_turn_that_runs_is_shown_as_such_and_grows(store: Path, browser: httpx.Client) -> None:
    with sync.open_memory(Settings(store={"url": f"sqlite:///{store}"}, **SETTINGS)) as memory:
        with memory.turn("runs", "Which page names the boiler?", user_id="ann", budget=1200) as turn:
            turn.add(*exchange(1))
            first, context = browser.get("/session?id=runs").text, browser.get("/context?id=runs").text
            assert "the turn of message 1 is unfinished: 1 calls, 1 results so far" in first
            assert 'data-poll="/session?id=runs&amp;window=true"' in first
            assert "this is for the next step of the turn of message 1" in context
            assert "compacted" not in first + context
            for number in range(2, 30):
                turn.add(*exchange(number))
            done = turn.current_context().report.compaction
            assert done is not None
            grown = browser.get("/session?id=runs&window=true", headers={"x-fragment": "timeline"}).text
            context = browser.get("/context?id=runs").text
            assert "29 calls, 29 results so far" in grown
            for page in (grown, context):
                assert f"{done.cleared:,} shown as stubs" in page
                assert f"the last of {done.batches:,} times before message {done.since:,} of the turn" in page
                assert f"saves {done.saved_tokens:,} tokens in each context" in page
            assert "[cleared: " in context or "Earlier steps of this turn" in context
            turn.answer("Page 7.")
        for page in ("/session?id=runs", "/context?id=runs"):
            text = browser.get(page).text
            assert "unfinished" not in text
            assert 'id="timeline" aria-label="Messages" data-poll' not in text


def test_a_turn_that_died_long_ago_is_looked_at_once(store: Path, browser: httpx.Client) -> None:
    with sync.open_memory(Settings(store={"url": f"sqlite:///{store}"}, **SETTINGS)) as memory:
        call, _ = exchange(1)
        said = Message.user("Hello?", created_at=1_700_000_000_000_000)
        memory.save_history("died", [said, msgspec.structs.replace(call, created_at=said.created_at)])
    page, context = browser.get("/session?id=died").text, browser.get("/context?id=died").text
    assert "is unfinished: 1 calls, 0 results so far" in page
    assert "data-poll" not in page
    assert "the run was interrupted" in context
