"""What a person sees who opens the service in a browser. How it looks there is tested in tests/studio."""

from __future__ import annotations

import pytest

from reactor_memory.server import explorer
from reactor_memory.server.problems import PROBLEM_JSON
from tests.server.callers import Service

pytestmark = pytest.mark.anyio


async def test_the_root_says_what_it_is_and_where_to_go(service: Service) -> None:
    answer = await service.client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert "explorer" not in answer.text
    for path in ("/docs", "/v1/openapi.json", "/v1/health", "/v1/ready"):
        assert path in answer.text
        assert (await service.client.get(path)).status_code == 200


async def test_the_page_loads_nothing_from_other_hosts(service: Service) -> None:
    page = await service.client.get("/docs")
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert "script-src 'self';" in page.headers["content-security-policy"]
    for name in ("swagger-ui.css", "swagger-ui-bundle.js", "start.js"):
        assert f"docs/{name}" in page.text
        assert (await service.client.get(f"/docs/{name}")).status_code == 200


@pytest.mark.parametrize("name", ["index.html", "..%2f__init__.py", "oauth2-redirect.js"])
async def test_only_the_files_of_the_page_are_handed_out(service: Service, name: str) -> None:
    assert (await service.client.get(f"/docs/{name}")).status_code == 404


async def test_without_the_package_it_says_what_to_install(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "_swagger_ui", lambda: None)
    assert "browser, after pip install 'reactor-memory[explorer]'\n" in (await service.client.get("/")).text
    answer = await service.client.get("/docs")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == PROBLEM_JSON
    assert "reactor-memory[explorer]" in answer.text
