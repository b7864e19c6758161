"""Metrics and spans of requests: all there is to count, and nothing that was sent."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from tests.server.listening import Listening, listening_service

pytestmark = pytest.mark.anyio


async def metrics_of(caplog: pytest.LogCaptureFixture) -> dict[tuple[str, ...], float]:
    """Samples by their name and the values of their labels."""
    address = next(record.address for record in caplog.records if record.message == "metrics")  # type: ignore[attr-defined]
    async with httpx2.AsyncClient() as client:
        answer = await client.get(address)
    families = text_string_to_metric_families(answer.text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


async def ask(running: Listening, conversations: int) -> None:
    async with httpx2.AsyncClient(base_url=running.address, headers=running.user("ann")) as client:
        for number in range(conversations):
            created = await client.post("/v1/user/conversations", json={"title": f"canary {number}"})
            await client.get(f"/v1/user/conversations/{created.json()['id']}")
            await client.get(f"/canary/{number}")
        await client.request("PURGE", "/v1/health")


async def test_requests_are_counted_by_templates_of_routes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "reactor_memory")
    async with listening_service(tmp_path, http={"metrics_port": 0}) as running:
        await ask(running, 3)
        found = await metrics_of(caplog)
        async with httpx2.AsyncClient() as client:
            assert (await client.get(f"{running.address}/metrics")).status_code == 404
    requests = {sample[1:]: value for sample, value in found.items() if sample[0] == "reactor_memory_requests_total"}
    assert requests == {
        ("POST", "/v1/user/conversations", "201"): 3,
        ("GET", "/v1/user/conversations/{conversationId}", "200"): 3,
        ("GET", "none", "404"): 3,
        ("other", "none", "405"): 1,
    }
    assert found["reactor_memory_requests_in_flight",] == 0
    assert found["reactor_memory_request_seconds_count", "POST", "/v1/user/conversations"] == 3
    assert found["reactor_memory_store_up",] == 1
    assert found["reactor_memory_open_streams",] == found["reactor_memory_summary_work_due",] == 0
    assert "canary" not in str(found)


async def test_what_search_is_behind_with_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "reactor_memory")
    sections = {"search": {"enabled": True}, "background": {"enabled": False}}
    async with listening_service(tmp_path, http={"metrics_port": 0}, **sections) as running:
        async with httpx2.AsyncClient(base_url=running.address, headers=running.user("ann")) as client:
            created = (await client.post("/v1/user/conversations", json={})).json()
            await client.post(f"/v1/user/conversations/{created['id']}/messages", json={"content": "canary"})
        found = await metrics_of(caplog)
    waiting = ("words_waiting", "meanings_waiting", "parked")
    assert [found[f"reactor_memory_search_{each}",] for each in waiting] == [1, 0, 0]


async def test_request_is_a_span_within_the_trace_of_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    async with listening_service(tmp_path, telemetry={"enabled": True}) as running:
        headers = {**running.user("ann"), "traceparent": f"00-{1:032x}-{2:016x}-01"}
        async with httpx2.AsyncClient(base_url=running.address, headers=headers) as client:
            created = (await client.post("/v1/user/conversations", json={"title": "canary"})).json()
            path = f"/v1/user/conversations/{created['id']}/messages"
            await client.post(path, json={"content": "canary"})
            await client.get("/canary?canary=1", headers={"User-Agent": "canary"})
    found = {span.name: span for span in spans.get_finished_spans()}
    request = found["POST /v1/user/conversations/{conversationId}/messages"]
    saving = found["gen_ai.memory.save"]
    assert {span.context.trace_id for span in found.values()} == {1}
    assert request.parent is not None
    assert saving.parent is not None
    assert (request.parent.span_id, saving.parent.span_id) == (2, request.context.span_id)
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": "/v1/user/conversations/{conversationId}/messages",
        "http.response.status_code": 201,
    }
    assert "canary" not in "".join(span.to_json() for span in found.values())
