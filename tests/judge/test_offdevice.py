"""Languages without their device: which setting a kernel gets, and figures of an untrusted process taken as what they are."""

from __future__ import annotations

import pytest

from kernelwright.core.errors import ConfigError
from kernelwright.core.torch_operators import judge_calls
from kernelwright.core.verdict import Status
from kernelwright.judge.offdevice import compiled_for, does_not_fit, setting
from kernelwright.judge.rejection import from_reply
from kernelwright.judge.verify import _compiled
from kernelwright.target import Target

FACTS = {"input_bytes": 1 << 20, "output_bytes": 1 << 20, "parameter_bytes": 0, "flops": 1 << 20, "dtype": "float32"}


def test_native_languages_have_no_setting() -> None:
    assert setting("cpp") is None
    assert setting("python", "cpu") is None


def test_a_gpu_language_is_executed_and_compiled_for_what_was_asked() -> None:
    found = setting("triton", "a100, mi300x")
    assert found is not None
    assert found.execution == "emulator"
    other = found.other()
    assert other is not None
    assert (other.execution, other.sheet()["execution"], other.other()) == ("interpreter", "interpreter", None)
    assert [target.name for target in found.targets] == ["a100", "mi300x"]
    assert found.sheet(1)["arch"] == "gfx942"


def test_an_unknown_target_is_told() -> None:
    with pytest.raises(ConfigError, match="h200"):
        setting("triton", "h200")


def test_figures_are_totalled_and_the_worst_kernel_decides() -> None:
    reply = {
        "compiler": "some",
        "kernels": [
            {"name": "a", "registers": 32, "shared_memory": 0, "spills": 8, "threads": 256, "blocks": 10_000},
            {"name": "b", "registers": 255, "shared_memory": 1024, "spills": 4, "threads": 256, "blocks": 10_000},
        ],
    }
    found = compiled_for(Target.load("h100"), reply, FACTS)
    assert (found.registers, found.shared_memory, found.spills) == (255, 1024, 12)
    assert found.occupancy == 0.125
    assert found.limiter == "registers"
    assert found.predicted_ms is not None
    assert not does_not_fit(Target.load("h100"), found)


@pytest.mark.parametrize("nonsense", [None, "many", -1, True, 1e9, [], {"a": 1}, 1 << 70])
def test_nonsense_from_the_candidate_is_no_figure(nonsense: object) -> None:
    reply = {
        "compiler": 3,
        "kernels": [{"name": nonsense, "registers": nonsense, "spills": nonsense, "threads": 128}, nonsense],
    }
    found = compiled_for(Target.load("h100"), reply, FACTS)
    assert found.registers is None
    assert found.spills is None


def test_a_target_without_threads_has_no_occupancy_but_a_prediction() -> None:
    reply = {"compiler": "lowering", "stage": "linalg", "kernels": [{"name": "k", "blocks": 40}]}
    found = compiled_for(Target.load("ascend910b"), reply, FACTS)
    assert (found.stage, found.registers, found.shared_memory, found.occupancy, found.limiter) == (
        "linalg",
        None,
        None,
        None,
        None,
    )
    assert found.predicted_ms is not None
    assert not does_not_fit(Target.load("ascend910b"), found)


def test_the_verdicts_sentence_says_no_more_than_the_compiler() -> None:
    h100, npu = Target.load("h100"), Target.load("ascend910b")
    kernels = [{"name": "k", "registers": 32, "threads": 128, "blocks": 40}]
    assert _compiled("h100", compiled_for(h100, {"kernels": kernels}, FACTS)).startswith(
        "compiles for sm_90 (predicted, not measured:"
    )
    missing = compiled_for(h100, {"compiler": "nvcc is missing: install it", "kernels": []}, FACTS)
    assert _compiled("h100", missing) == "not compiled for sm_90: nvcc is missing: install it"
    lowered = compiled_for(npu, {"compiler": "c; no CANN", "stage": "linalg", "kernels": kernels}, FACTS)
    assert _compiled("n", lowered).startswith(
        "lowers to linalg for Ascend910B3 (c; no CANN; predicted by the roofline alone, not measured:"
    )
    assert _compiled("n", lowered.model_copy(update={"stage": "binary"})).startswith("compiles for Ascend910B3")


def test_a_languages_tools_are_told_with_the_targets_sheet() -> None:
    found = setting("triton", "h100,ascend910b")
    assert found is not None
    assert found.sheet(0)["tools"] == {}
    assert found.sheet(1)["tools"].keys() & {"triton_ascend", "add"}


def test_a_block_with_too_much_shared_memory_does_not_fit() -> None:
    target = Target.load("t4")
    reply = {"kernels": [{"name": "big", "registers": 32, "shared_memory": 100_000, "spills": 0, "threads": 128, "blocks": 1}]}
    assert "100,000 bytes" in does_not_fit(target, compiled_for(target, reply, FACTS))


def test_a_compiler_that_refuses_is_no_file_that_cannot_be_loaded() -> None:
    reply = {
        "ok": False,
        "kind": "build",
        "type": "CompileFailed",
        "error": "TileLang does not lower the kernel for sm_80: why",
    }
    rejected = from_reply(reply, "compiling", "", "")
    assert rejected.status is Status.build_failed
    assert rejected.reason == "the kernel does not build: TileLang does not lower the kernel for sm_80: why"


def test_cublas_is_a_library_like_any_other() -> None:
    assert judge_calls(["cublas::cublasSgemm", "aten::empty"], "pure") == (["cublas::cublasSgemm"], ["cublas::cublasSgemm"])
    assert judge_calls(["cublas::cublasSgemm"], "hybrid") == (["cublas::cublasSgemm"], [])
