"""The page: everything in one file, nothing of what it quotes can break it; and in a real browser it sorts, filters and opens."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernelwright.jobs.bench.page import to_page
from kernelwright.jobs.bench.report import write
from tests.jobs.bench.chromium import PROGRAM, Chromium
from tests.jobs.bench.sample import report

browser = pytest.mark.skipif(PROGRAM is None, reason="needs Chromium: apt-get install chromium")


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
    with Chromium(tmp_path / "profile", dark=dark) as page:
        page.open(tmp_path / "report.html")
        assert page.run("document.title") == "Suite in cpp"
        assert page.run("document.querySelectorAll('tr.task').length") == 300
        assert page.run("document.querySelectorAll('svg circle').length") > 500

        speeds = "[...document.querySelectorAll('tr.task')].map(r => r.dataset.key)"
        known = {record.key: record.speedup for record in made.records}
        for order in (True, False):
            page.run("document.querySelector('[data-sort=speed]').click()")
            shown = [known[key] for key in page.run(speeds) if known[key] is not None]
            assert shown == sorted(shown, reverse=order)
            assert known[page.run(speeds)[-1]] is None, "what has no speed comes last, either way"

        page.run(
            "document.querySelector('#search').value = 'conv'; document.querySelector('#search').dispatchEvent(new Event('input'))"
        )
        keys = page.run(speeds)
        assert keys == [key for key in keys if "conv" in key]
        assert len(keys) == sum(record.family == "conv" for record in made.records)
        page.run("document.querySelector('#clear').click()")
        failure = made.failures[0]
        page.run(f"document.querySelector('[data-outcome={failure.outcome}]').click()")
        assert sorted(page.run(speeds)) == sorted(failure.tasks)
        page.run("document.querySelector('#clear').click()")

        first = next(record for record in made.records if record.kernel)
        page.run(f"document.querySelector('tr.task[data-key=\"{first.key}\"]').click()")
        page.until("document.querySelectorAll('tr.detail').length === 1")
        tabs = page.run("[...document.querySelectorAll('[role=tab]')].map(t => t.textContent)")
        assert tabs == ["Verdict", "Sketch", "Kernel", "Task", "Lineage"]
        page.run("[...document.querySelectorAll('[role=tab]')].find(t => t.textContent === 'Kernel').click()")
        assert "class ModelNew" in page.run("document.querySelector('tr.detail pre').textContent")
        assert page.run("document.querySelectorAll('tr.detail pre span.k').length") > 3

        page.run(
            "document.querySelector('#scatter .dot').dispatchEvent(new MouseEvent('mouseenter', {clientX: 300, clientY: 300}))"
        )
        assert "eager" in page.run("document.querySelector('#tip').textContent")
        seen = page.run("getComputedStyle(document.body).backgroundColor")
        page.run("document.querySelector('#theme').click(); document.querySelector('#theme').click()")
        assert page.run("document.documentElement.dataset.theme") == "dark"
        assert (page.run("getComputedStyle(document.body).backgroundColor") == seen) is dark

        picture = page.screenshot(tmp_path / "page.png")
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 30_000, "the page is blank"
        assert page.run("document.title") == "Suite in cpp", "a task's text was run"
        assert page.complaints == []
