"""Which operators count as computing, on which track, from which thread; which libraries count as foreign."""

from __future__ import annotations

import os
import threading

import pytest
import torch

from kernelwright.core.torch_operators import judge_calls
from kernelwright.judge.honesty import trace


def seen(function: object) -> set[str]:
    with torch.no_grad(), trace.Trace() as watch:
        function()  # type: ignore[operator]
    return watch.operators


@pytest.mark.parametrize(
    "work",
    [
        lambda: torch.empty(4, 4).t().contiguous(),
        lambda: torch.zeros(3).view(3, 1).expand(3, 4).clone(),
        lambda: torch.ones(4, 4)[1:, ::2].permute(1, 0).reshape(-1).double(),
        lambda: torch.empty(3).copy_(torch.ones(3)).unsqueeze(0).squeeze(0).detach(),
        lambda: torch.full((2, 2), 3.0).flatten().split(2),
    ],
)
def test_allocation_views_and_copies_are_free(work: object) -> None:
    assert judge_calls(seen(work), "pure") == ([], [])


@pytest.mark.parametrize(
    ("work", "name"),
    [
        (lambda: torch.ones(2, 2) @ torch.ones(2, 2), "aten::mm"),
        (lambda: torch.relu(torch.ones(2)), "aten::relu"),
        (lambda: torch.ones(2) + 1, "aten::add"),
        (lambda: torch.ones(2).sum(), "aten::sum"),
        (lambda: torch.cat([torch.ones(2), torch.ones(2)]), "aten::cat"),
        (lambda: torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2)), "aten::convolution"),
    ],
)
def test_computing_is_named_and_forbidden_on_track_pure(work: object, name: str) -> None:
    calls, forbidden = judge_calls(seen(work), "pure")
    assert name in calls
    assert name in forbidden


def test_hybrid_allows_gemm_and_convolution_but_no_epilogue() -> None:
    product = seen(lambda: torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)))
    assert judge_calls(product, "hybrid")[1] == []
    assert judge_calls(product, "hybrid")[0]
    assert "aten::softmax" in judge_calls(seen(lambda: torch.softmax(torch.ones(2, 3), 1)), "hybrid")[1]


def test_the_inner_steps_of_a_library_routine_go_by_its_name() -> None:
    calls, forbidden = judge_calls(seen(lambda: torch.cdist(torch.ones(40, 8), torch.ones(40, 8))), "hybrid")
    assert "aten::_euclidean_dist" in calls
    assert forbidden == []


def test_a_profiler_range_with_a_library_name_excuses_nothing() -> None:
    def work() -> None:
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
        with torch.profiler.record_function("aten::mm"):
            torch.softmax(torch.ones(2, 3), 1)

    assert "aten::_softmax" in judge_calls(seen(work), "hybrid")[1]


def test_other_threads_are_seen_too() -> None:
    def work() -> None:
        thread = threading.Thread(target=lambda: torch.ones(2, 2) @ torch.ones(2, 2))
        thread.start()
        thread.join()

    assert "aten::mm" in seen(work)


def test_operators_of_an_extension_are_the_kernel_itself() -> None:
    assert judge_calls({"mine::softmax", "aten::empty"}, "pure") == ([], [])


@pytest.mark.parametrize(
    "path", ["/x/libopenblas64_p-r0.so", "/opt/intel/libmkl_rt.so.2", "/s/scipy/linalg/_f.so", "/usr/lib/libcblas.so.3"]
)
def test_numerical_libraries_are_foreign(path: str) -> None:
    assert trace.COMPUTE_LIBRARY.search(path)


@pytest.mark.parametrize(
    "path", ["/home/kernel/tmp/k.so", "/usr/lib/libgomp.so.1", "/usr/lib/libm.so.6", "/v/lib/_bisect.cpython-311.so"]
)
def test_what_a_kernel_builds_and_the_system_are_not(path: str) -> None:
    assert not trace.COMPUTE_LIBRARY.search(path)


def test_the_maps_of_a_process_name_its_libraries() -> None:
    assert any("libtorch_cpu" in path for path in trace.mapped_files(os.getpid()))
    assert trace.foreign_libraries(os.getpid(), trace.mapped_files(os.getpid())) == []
