"""A verdict on the terminal says everything that the verdict says, and claims nothing more."""

from __future__ import annotations

import pytest
from rich.console import Console

from kernelwright.cli.panel import verdict_panel
from kernelwright.core.verdict import Build, CompiledFor, Mismatch, Timing, Trials, Verdict

TIMING = {
    "kernel_ms": 5.6,
    "eager_ms": 11.4,
    "speedup": 2.04,
    "speedup_low": 1.98,
    "speedup_high": 2.1,
    "noise": 0.013,
    "rounds": 20,
    "threads": 2,
}


def shown(verdict: Verdict) -> str:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(verdict_panel(verdict))
    return console.export_text()


def correct(**timing: object) -> Verdict:
    return Verdict(
        status="correct", reason="right", task="softmax", dsl="cpp", sandbox="namespaces", timing=Timing(**{**TIMING, **timing})
    )


def test_a_fast_kernel_shows_its_speedup_with_the_interval() -> None:
    text = shown(correct(compile_ms=12.3, speedup_vs_compile=2.2, roofline_ms=3.2, roofline_fraction=0.57))
    for words in (
        "✓ correct",
        "softmax",
        "2.04x as fast as eager",
        "[1.98, 2.10]",
        "torch.compile",
        "2.20x",
        "57%",
        "±1.3%",
        "20 rounds",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("low", "middle", "high", "claim"),
    [
        (0.95, 1.02, 1.1, "no difference to eager can be shown"),
        (0.4, 0.5, 0.6, "slower than eager"),
        (1.01, 1.1, 1.2, "1.10x as fast"),
    ],
)
def test_faster_is_claimed_only_when_the_interval_says_so(low: float, middle: float, high: float, claim: str) -> None:
    assert claim in shown(correct(speedup_low=low, speedup=middle, speedup_high=high))


def test_a_fraction_beyond_the_roofline_is_explained() -> None:
    assert "served from cache" in shown(correct(roofline_ms=9.0, roofline_fraction=1.6))


def test_a_microsecond_kernel_is_shown_in_microseconds() -> None:
    assert "4.20 µs" in shown(correct(kernel_ms=0.0042))


def test_a_mismatch_says_where_how_many_and_an_example() -> None:
    mismatch = Mismatch(
        output="output",
        wrong=700,
        total=10000,
        region="last 7 columns",
        worst_error=0.3,
        bound=1e-6,
        samples=("[0, 93] 0.1",),
        trial="own",
    )
    text = shown(Verdict(status="wrong_values", reason="differs", mismatch=mismatch, sandbox="namespaces"))
    for words in (
        "✗ wrong_values",
        "last 7 columns",
        "700 of 10,000 elements (7.0%)",
        "0.3, allowed 1e-06",
        "[0, 93] 0.1",
        "own",
    ):
        assert words in text


def test_a_build_failure_shows_the_lines_around() -> None:
    verdict = Verdict(status="build_failed", reason="g++ failed", build=Build(message="expected ';'", excerpt="int x\nint y;"))
    text = shown(verdict)
    assert "expected ';'" in text
    assert "int y;" in text


def test_no_sandbox_is_said_loudly_and_warnings_and_flags_are_shown() -> None:
    text = shown(
        Verdict(
            status="crashed", reason="died", sandbox="none", warnings=("busy",), task_flags=("zeros pass",), stderr_tail="boom"
        )
    )
    for words in ("NOT SANDBOXED", "! busy", "! zeros pass", "boom"):
        assert words in text


def test_brackets_in_messages_are_text_and_not_markup() -> None:
    assert "[bold]x[/nope]" in shown(Verdict(status="crashed", reason="[bold]x[/nope]"))


def test_trials_and_library_calls_are_listed() -> None:
    verdict = Verdict(
        status="correct",
        reason="right",
        track="hybrid",
        library_calls=("aten.mm",),
        trials=Trials(seeds=3, distributions=("own", "zeros"), shapes=4, noncontiguous=2, reference="fp64"),
    )
    text = shown(verdict)
    for words in ("3 seeds", "own, zeros", "4 shapes", "2 non-contiguous", "fp64", "hybrid: aten.mm"):
        assert words in text


def test_a_kernel_that_is_only_lowered_shows_the_stage_and_no_registers() -> None:
    figures = CompiledFor(
        stage="linalg", compiler="triton-ascend 3.2.0; no CANN: no binary", architecture="Ascend910B3", predicted_ms=0.05
    )
    text = shown(
        Verdict(status="correct", reason="right", dsl="triton", execution="interpreter", compiled_for={"ascend910b": figures})
    )
    assert "lowered to linalg by triton-ascend 3.2.0; no CANN: no binary" in text
    assert "predicted, not measured: 0.05 ms" in text
    assert "None" not in text
