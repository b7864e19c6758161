"""Pictures of the Studio, with the packaged sessions: ``python -m tests.studio.screenshots FOLDER``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.studio.conftest import ARGUMENTS, entered, studio

SESSIONS = Path("reactor_memory/data/orders.jsonl.gz")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        store = Path(temporary) / "agent.db"
        _command("import", str(SESSIONS), "--store", str(store))
        _command("worker", "--once", "--store", str(store))
        with studio(store, "--write") as opened, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
            state = entered(browser, opened)
            context = browser.new_context(viewport={"width": 1280, "height": 800}, storage_state=state)
            page = context.new_page()
            session = _session_of(page, opened.base)
            for name, path in pages_of(session).items():
                page.goto(opened.base + path)
                page.wait_for_load_state("networkidle")
                page.screenshot(path=folder / f"studio-{name}.png")
            page.goto(f"{opened.base}/session?id={session}&show=facts")
            page.locator("#aside .facts a").nth(4).click()
            page.wait_for_selector(".message.chosen")
            page.screenshot(path=folder / "studio-fact.png")
            page.goto(f"{opened.base}/eval")
            page.locator("input[type=file]").set_input_files(SESSIONS)
            page.get_by_role("button", name="Evaluate").last.click()
            page.wait_for_selector(".plot", timeout=300_000)
            page.screenshot(path=folder / "studio-eval.png", full_page=True)
            browser.close()


def _session_of(page: Page, base: str) -> str:
    page.goto(f"{base}/")
    return page.locator("tbody tr").first.locator("code").inner_text()


def pages_of(session: str) -> dict[str, str]:
    return {
        "sessions": "/",
        "context": f"/context?id={session}&budget=2000&message=What+did+I+order+first%3F&beside=take_last",
        "chat": f"/chat?id={session}",
    }


def _command(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "reactor_memory", *arguments], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
