"""Samples of a real process land on the files it runs; shares decide, and waiting does not count."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter

import pytest

from kernelwright.core.task import Task
from kernelwright.judge.honesty.sampling import suspicion
from kernelwright.judge.servers import CANDIDATE, judge_server
from kernelwright.judge.timing.baselines import Baselines
from kernelwright.workers.exclusive import Exclusive
from kernelwright.workers.sampling import Sampler, Sighting

OWN, TORCH, GOMP = "/home/kernel/tmp/k.so", "/v/torch/lib/libtorch_cpu.so", "/v/torch/lib/libgomp.so.1"
PYTHON = "/usr/bin/python3.11"
BLAS, NUMPY = "/v/numpy.libs/libscipy_openblas64_-x.so", "/v/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so"


@pytest.mark.parametrize(
    ("files", "copied", "word"),
    [
        ({OWN: 100, GOMP: 500}, 0, ""),
        ({TORCH: 100, GOMP: 500}, 0, "libtorch"),
        ({TORCH: 100, OWN: 20}, 0, "libtorch"),
        ({TORCH: 10, OWN: 200}, 0, ""),
        ({TORCH: 100}, 1 << 30, ""),
        ({TORCH: 5}, 0, ""),
        ({TORCH: 30, PYTHON: 500, OWN: 5}, 0, ""),
        ({TORCH: 100, PYTHON: 300}, 0, "libtorch"),
        ({BLAS: 10, OWN: 90}, 0, "BLAS"),
        ({NUMPY: 60, OWN: 40}, 0, "numpy"),
        ({NUMPY: 5, OWN: 100}, 0, ""),
    ],
)
def test_shares_of_work_decide(files: dict[str, int], copied: int, word: str) -> None:
    said = suspicion(Sighting(Counter(files), calls=10), copied)
    assert (word in said) if word else (said == "")


def test_microseconds_of_allocation_are_no_sign_of_anything() -> None:
    assert suspicion(Sighting(Counter({TORCH: 30}), calls=2000), 0) == ""


def test_a_busy_process_is_seen_where_it_is_busy() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5)\nwhile True: pass"])
    sampler = Sampler.start(process.pid)
    try:
        if sampler is None:
            pytest.skip("this machine allows no perf events")
        seen = Sighting()
        deadline = time.monotonic() + 30
        while seen.total < 20 and time.monotonic() < deadline:
            time.sleep(0.1)
            sampler.take(seen)
        assert seen.total >= 20
        assert any("python" in path for path in seen.files)
        sampler.close()
    finally:
        process.kill()
        process.wait()


def test_contenders_are_sampled_as_the_candidate_is() -> None:
    """Sampling cost the candidate alone 5 % of a short call, which every verdict then held against it."""
    source = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    task = Task.from_source(source + "def get_inputs():\n    return [torch.zeros(4)]\n")
    with judge_server() as server:
        candidate = server.spawn(CANDIDATE, sandboxed=True)
        eager = Baselines(server, 1, Exclusive(), kept=1).eager(task)
        assert candidate.observe() == (eager.sampler is not None)
