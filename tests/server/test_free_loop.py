"""Whatever one caller sends, no step of the service's event loop takes long: all callers share it."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.scenes import hurting_texts
from tests.scenes.loop_watch import free_loop
from tests.scenes.tables import each_row
from tests.server.callers import Service

pytestmark = pytest.mark.anyio


async def every_step(service: Service, text: str) -> None:
    made = (await service.ask("POST", "/v1/user/conversations", {"title": text[:200]})).json()
    path = f"/v1/user/conversations/{made['id']}"
    for body in ({"content": text}, {"content": "And QX-7?"}, {"content": text[:5000], text[:20_000]: 1}, {text: text}):
        await service.ask("POST", f"{path}/messages", body)
    for route in ("messages", "context?budget=4000", f"messages?limit={quote(text[:500])}"):
        await service.ask("GET", f"{path}/{route}")
    await service.ask("POST", "/v1/user/search/messages", {"query": text[:1000]})
    await service.ask("POST", "/v1/user/search/messages", {"query": text})
    await service.ask("GET", f"/v1/user/conversations?query={quote(text[:500])}")


async def test_texts_that_are_made_to_hurt(service: Service) -> None:
    await every_step(service, "Hello")
    for text in hurting_texts.FEW[2:]:
        async with free_loop():
            await every_step(service, text)


@pytest.mark.slow
@each_row("kind", hurting_texts.EACH)
async def test_each_text_that_is_made_to_hurt(service: Service, kind: str) -> None:
    await every_step(service, "Hello")
    async with free_loop():
        await every_step(service, hurting_texts.EACH[kind])
