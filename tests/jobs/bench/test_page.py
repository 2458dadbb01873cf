"""The page: everything in one file, nothing of what it quotes can break it; and in a real browser it sorts, filters and opens."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernelwright.jobs.bench.page import to_page
from kernelwright.jobs.bench.report import write
from tests.browser import browser, chromium, opened
from tests.jobs.bench.sample import report


def test_the_page_stands_alone_and_hostile_text_stays_text(tmp_path: Path) -> None:
    page = to_page(report(30, tmp_path), tmp_path)
    assert page.count("</script>") == 3, "text of a task ended a script"
    assert not re.search(r"""(src|href)=["'](?!data:)""", page), "something is loaded from elsewhere"
    assert not re.search(r"\{\{[A-Z]+\}\}", page)
    data = re.search(r'id="report">(.*?)</script>', page, re.DOTALL)
    assert data
    assert len(json.loads(data[1])["records"]) == 30


def test_a_page_of_300_tasks_stays_small(tmp_path: Path) -> None:
    assert len(to_page(report(300, tmp_path), tmp_path)) < 2_000_000


def test_missing_kernels_are_no_obstacle(tmp_path: Path) -> None:
    made = report(5, tmp_path)
    for path in tmp_path.rglob("kernel.py"):
        path.unlink()
    assert "</html>" in to_page(made, tmp_path)


@browser
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_in_a_browser(tmp_path: Path, dark: bool) -> None:
    made = report(300, tmp_path)
    write(made, tmp_path)
    known = {record.key: record.speedup for record in made.records}
    with chromium() as running, opened(running, dark=dark) as page:
        page.goto((tmp_path / "report.html").as_uri())
        rows = page.locator("tr.task")
        keys = lambda: rows.evaluate_all("rows => rows.map(row => row.dataset.key)")  # noqa: E731
        rows.last.wait_for()
        assert page.title() == "Suite in cpp"
        assert rows.count() == 300
        assert page.locator("svg circle").count() > 500

        for order in (True, False):
            page.click("[data-sort=speed]")
            shown = [known[key] for key in keys() if known[key] is not None]
            assert shown == sorted(shown, reverse=order)
            assert known[keys()[-1]] is None, "what has no speed comes last, either way"

        page.fill("#search", "conv")
        assert keys() == [key for key in keys() if "conv" in key]
        assert len(keys()) == sum(record.family == "conv" for record in made.records)
        page.click("#clear")
        failure = made.failures[0]
        page.click(f"[data-outcome={failure.outcome}]")
        assert sorted(keys()) == sorted(failure.tasks)
        page.click("#clear")

        first = next(record for record in made.records if record.kernel)
        page.click(f'tr.task[data-key="{first.key}"]')
        page.wait_for_selector("tr.detail [role=tab]")
        assert page.locator("tr.detail [role=tab]").all_text_contents() == ["Verdict", "Sketch", "Kernel", "Task", "Lineage"]
        page.click("role=tab[name=Kernel]")
        assert "class ModelNew" in page.text_content("tr.detail pre")
        assert page.locator("tr.detail pre span.k").count() > 3

        page.locator("#scatter .dot").last.hover()
        assert "eager" in page.text_content("#tip")
        shade = "getComputedStyle(document.body).backgroundColor"
        seen = page.evaluate(shade)
        page.click("#theme")
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert (page.evaluate(shade) == seen) is dark

        assert len(page.screenshot()) > 30_000, "the page is blank"
        assert page.title() == "Suite in cpp", "a task's text was run"
        assert page.complaints == []
