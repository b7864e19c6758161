"""The page of `serve` to try its interface with, in a real browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
from playwright.sync_api import Browser, expect

from tests.studio.conftest import Opened, watched


def test_the_interface_is_described_and_can_be_tried(browser: Browser, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reactor_memory", "serve", "--dev", "--port", "0", "--store", "agent.db"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path
    ) as serving:
        assert serving.stdout is not None
        try:
            base = next(line.split()[2].rstrip(",") for line in serving.stdout if line.startswith("Serving on"))
            assert httpx.get(f"{base}/").status_code == 200
            with watched(browser, Opened(base, base), None) as (page, problems):
                page.goto(f"{base}/docs")
                expect(page.locator(".opblock").first).to_be_visible(timeout=20_000)
                page.locator("#operations-system-getHealth").click()
                page.get_by_role("button", name="Try it out").click()
                page.get_by_role("button", name="Execute").click()
                expect(page.locator(".live-responses-table")).to_contain_text('"status": "ok"')
                assert problems == []
        finally:
            serving.terminate()
            serving.wait(15)
