"""Reports as text: Markdown that holds together, documents that agree with the committed reports, a schema that is explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from kernelwright.cli.main import run
from kernelwright.core.errors import KernelwrightError
from kernelwright.jobs.bench.markdown import to_markdown
from kernelwright.jobs.bench.metrics import Figure, Speed, Summary
from kernelwright.jobs.bench.readme import BLOCK, refreshed
from kernelwright.jobs.bench.record import Machine, Options, Record, Step
from kernelwright.jobs.bench.report import Failure, Report, read, write
from tests.jobs.bench.sample import report

ROOT = Path(__file__).parents[3]
DOCUMENTS = [path for path in (ROOT / "README.md", ROOT / "docs" / "results.md") if path.exists()]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_say_what_the_committed_reports_say(path: Path) -> None:
    text = path.read_text()
    assert BLOCK.search(text), "there is no table made from a report"
    assert refreshed(path) == text, f"run: kernelwright bench readme {path.relative_to(ROOT)}"


def test_a_stale_table_is_noticed_and_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(report(20), tmp_path)
    document = tmp_path / "README.md"
    document.write_text("# x\n\n<!-- bench:overview report.json -->\nold\n<!-- /bench -->\n\nrest\n")
    assert run(["bench", "readme", str(document), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"changed": [str(document)]}
    text = document.read_text()
    assert "old" not in text
    assert "Suite/level1" in text
    assert text.endswith("<!-- /bench -->\n\nrest\n")
    assert refreshed(document) == text


def test_an_unknown_table_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("<!-- bench:nothing report.json -->\n<!-- /bench -->\n")
    with pytest.raises(KernelwrightError, match="bench:nothing"):
        refreshed(tmp_path / "a.md")


def test_markdown_tables_survive_hostile_reasons() -> None:
    text = to_markdown(report(60))
    widths: dict[int, int] = {}
    for block in re.split(r"\n\n", text):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        for line in lines:
            cells = len(re.findall(r"(?<!\\)\|", line))
            assert widths.setdefault(id(block), cells) == cells, line
    assert "55 of 60 correct" in text
    assert "failures as 1.0x" in text
    assert "<script>" not in text


def test_scaled_and_unfinished_runs_say_so() -> None:
    whole = report(6)
    marked = whole.model_copy(update={"options": Options(scale=0.25), "planned": 9})
    text = to_markdown(marked)
    assert "scaled by 0.25" in text
    assert "Unfinished: 6 of 9" in text


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = report(9)
    write(made, tmp_path)
    assert read(tmp_path) == made
    assert read(tmp_path / "report.json") == made
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(KernelwrightError, match="not a report of this version"):
        read(tmp_path)


@pytest.mark.parametrize("model", [Report, Options, Machine, Summary, Speed, Figure, Failure, Record, Step])
def test_every_field_of_the_schema_is_explained(model: type[BaseModel]) -> None:
    text = (ROOT / "docs" / "report-schema.md").read_text()
    section = re.search(rf"^## {model.__name__}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert section, f"no section on {model.__name__}"
    missing = [name for name in model.model_fields if f"`{name}`" not in section[1]]
    assert not missing


def test_comparing_fails_on_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = report(20)
    slower = [
        record.model_copy(
            update={"timing": record.timing.model_copy(update={"speedup": 0.05, "speedup_low": 0.04, "speedup_high": 0.06})}
        )
        if record.timing and place == 0
        else record
        for place, record in enumerate(before.records)
    ]
    for name, made in (("a", before), ("b", before.model_copy(update={"records": tuple(slower)}))):
        (tmp_path / name).mkdir()
        write(made, tmp_path / name)
    assert run(["bench", "compare", str(tmp_path / "a"), str(tmp_path / "a"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["regressions"] == 0
    assert run(["bench", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["regressions"] == 1
    assert run(["bench", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert "slower" in capsys.readouterr().out
    assert run(["bench", "compare", str(tmp_path / "a")]) == 2
