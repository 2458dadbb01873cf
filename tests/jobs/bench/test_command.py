"""The bench command at its edges: what cannot be understood is one sentence and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.cli.main import run
from tests.jobs.bench.sample import report


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "no such suite"),
        (["core", "--effort", "heroic"], "effort 'heroic' is unknown"),
        (["core", "--contenders", "eager,luck"], "contender 'luck' is unknown"),
        (["core", "--shard", "9"], "I/N"),
        (["core", "--filter", "zzz"], "no task is left"),
        (["core", "--limit", "1", "--kernels", "nowhere"], "no such folder of kernels"),
        (["compare", "one"], "name two reports"),
        (["compare", "one", "two"], "cannot be read"),
    ],
)
def test_requests_that_make_no_sense(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["bench", *arguments, "--json"]) == 2
    out = capsys.readouterr().out
    assert words in json.loads(out)["error"]


def test_the_files_of_a_report_are_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = report(12, tmp_path)
    (tmp_path / "report.json").write_text(made.model_dump_json())
    assert run(["bench", "report", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["tasks"] == 12
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert (tmp_path / "report.md").read_text().startswith("# Suite in cpp")


def test_the_files_of_a_run_that_was_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from kernelwright.jobs.bench.ledger import Ledger
    from kernelwright.jobs.bench.record import Options
    from tests.jobs.bench.sample import MACHINE

    ledger = Ledger(tmp_path, Options(), MACHINE, resume=False, planned=9)
    for record in report(4).records:
        ledger.finish(record)
    assert run(["bench", "report", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["summary"]["tasks"], said["planned"], said["complete"]) == (4, 9, False)
    assert "Unfinished: 4 of 9" in (tmp_path / "report.md").read_text()
