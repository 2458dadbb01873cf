"""Screenshots of the page for docs/, from a store of runs: python web/screenshots.py [--store STORE] [--reports FOLDER].

Starts `kernelwright serve` on a free port and opens its views in headless Chromium (Debian: chromium; PyPI: playwright).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "images"
VIEWS = {
    "runs": ("/", "a.run-row", False),
    "run": ("/run/{run}", "h2", False),
    "kernels": ("/run/{run}?tab=kernels", "pre", True),
    "workbench": ("/new", "textarea", False),
    "bench": ("/bench", "h1", True),
}
"""Name → address, what must be there, whether dark."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", default=None, help="folder or URL of the store")
    parser.add_argument("--reports", default=str(ROOT / "bench" / "results"), help="folder with reports of bench")
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "kernelwright", "serve", "--port", "0", "--reports", asked.reports]
    command += ["--store", asked.store] if asked.store else []
    OUT.mkdir(exist_ok=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        assert server.stdout
        address = server.stdout.readline().strip().rstrip("/")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--hide-scrollbars"])
        try:
            run = ""
            for name, (path, wanted, dark) in VIEWS.items():
                context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="dark" if dark else "light")
                page = context.new_page()
                page.goto(address + path.format(run=run))
                page.locator(wanted).first.wait_for()
                page.wait_for_timeout(800)
                run = run or _first_run(page)
                page.screenshot(path=str(OUT / f"{name}.png"))
                print(OUT / f"{name}.png")
                context.close()
        finally:
            browser.close()
            server.terminate()


def _first_run(page: Any) -> str:
    return str(page.locator("a.run-row").first.get_attribute("data-run"))


if __name__ == "__main__":
    main()
