"""The door: commands are found without being loaded, every failure is one sentence, and --json is one object."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelwright.cli import main
from kernelwright.core.errors import JudgeError


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from kernelwright.cli.main import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


def test_help_lists_the_commands_and_imports_nothing_heavy() -> None:
    code = "import sys; from kernelwright.cli.main import run; run(['--help']); print([m for m in sys.modules if m in HEAVY])"
    code = code.replace("HEAVY", "('torch', 'numpy', 'pydantic', 'psutil')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "verify" in done.stdout
    assert "doctor" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", ["verify", "doctor", "config"])
def test_each_command_has_a_help_page(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout


def test_version() -> None:
    assert run("--version").stdout.startswith("kernelwright 0.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "nonsense"),
        (["config", "--bad"], "--bad"),
        (["verify", "only_one.py"], "KERNEL"),
        (["verify", "none.py", "none.py"], "none.py"),
    ],
)
def test_what_cannot_be_understood_is_exit_code_2_and_said_on_stderr(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments", [["config", "--bad"], ["verify", "none.py", "none.py"], ["verify", "x.py", "--dsl", "cobol"]]
)
def test_with_json_an_error_is_one_object(arguments: list[str], tmp_path: Path) -> None:
    done = run(*arguments, "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert set(json.loads(done.stdout)) == {"error"}


def test_an_error_of_ours_leaves_with_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(arguments: list[str]) -> None:
        raise JudgeError("the referee died")

    monkeypatch.setattr(main, "build_app", failing)
    assert main.run(["verify", "--json"]) == 2
    said = capsys.readouterr()
    assert json.loads(said.out) == {"error": "the referee died"}
    assert said.err == "kernelwright: the referee died\n"


def test_a_bug_is_one_sentence_unless_debugging(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(arguments: list[str]) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(main, "build_app", broken)
    monkeypatch.delenv("KERNELWRIGHT_DEBUG", raising=False)
    assert main.run(["x"]) == 2
    assert "internal error: ZeroDivisionError: oops" in capsys.readouterr().err
    monkeypatch.setenv("KERNELWRIGHT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main.run(["x"])


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(arguments: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "build_app", interrupted)
    assert main.run(["verify"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_config_shows_where_a_value_came_from(tmp_path: Path) -> None:
    (tmp_path / "kernelwright.toml").write_text("threads = 3\n")
    shown = json.loads(run("config", "--json", cwd=tmp_path).stdout)
    assert shown["threads"] == {"value": 3, "from": str(tmp_path / "kernelwright.toml")}
    assert shown["track"]["from"] == "default"
    assert "threads" in run("config", cwd=tmp_path).stdout


def test_a_misspelt_key_names_file_and_key(tmp_path: Path) -> None:
    (tmp_path / "kernelwright.toml").write_text("thread = 3\n")
    done = run("config", cwd=tmp_path)
    assert done.returncode == 2
    assert "kernelwright.toml: unknown key 'thread'; did you mean threads?" in done.stderr


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    task = tmp_path / "task.py"
    task.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
        "def get_inputs():\n    return [torch.randn(8)]\ndef get_init_inputs():\n    return []\n"
    )
    kernel = tmp_path / "kernel.py"
    kernel.write_text(
        "import time, torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        time.sleep(600)\n"
    )
    # The template's command line carries the import path, and its forks keep that command line: the folder's name marks them all.
    code = f"import sys; sys.path.append({str(tmp_path)!r}); from kernelwright.cli.main import main; main()"
    command = [sys.executable, "-c", code, "verify", str(task), str(kernel)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(_marked(tmp_path)) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(_marked(tmp_path)) >= 5
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr is not None
    assert "interrupted" in process.stderr.read()
    deadline = time.monotonic() + 10
    while _marked(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _marked(tmp_path) == []


def _marked(folder: Path) -> list[int]:
    """Running processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if str(folder).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found
