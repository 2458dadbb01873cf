"""Targets: the machine at hand, sheets as data, and what a wrong sheet says."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.core.errors import ConfigError
from kernelwright.target import Target, known_targets, measure
from kernelwright.target.cpu import cpu_features, cpu_info, flops_per_cycle


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_host_is_described_without_measuring() -> None:
    host = Target.host()
    assert host.kind == "cpu"
    assert host.origin == "estimated"
    assert host.cores >= 1
    assert host.bandwidth > 1e9
    assert host.peak("float32") >= host.peak("float64") > 1e9


def test_a_measurement_is_remembered_and_keeps_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {"read_bandwidth": 3e10, "write_bandwidth": 2e10, "wake": 1e-6}
    figures = iter(
        [
            {"flops": 2e11, "bandwidth": 3e10, "levels": {"L1d": 2e11, "L2": 1e11}, "call": 1e-6, **ways},
            {"flops": 1e11, "bandwidth": 4e10, "levels": {"L1d": 1e11, "L2": 2e11}, "call": 5e-7, **ways},
        ]
    )
    monkeypatch.setattr(measure, "run_benchmark", lambda model, cores, caches, seconds: next(figures))
    Target.host(measure=True)
    host = Target.host(measure=True)
    assert (host.origin, host.peak(), host.bandwidth) == ("measured", 2e11, 4e10)
    assert (host.level_bandwidth, host.call_seconds) == ({"L1d": 2e11, "L2": 2e11}, 5e-7)
    assert Target.host() == host


def test_a_damaged_cache_counts_as_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = measure._cache_file("model", 2)
    file.parent.mkdir(parents=True)
    for text in ("", "{", "[]", '{"flops": "x"}', '{"flops": 0, "bandwidth": 1, "levels": {}, "date": ""}'):
        file.write_text(text)
        assert measure.cached("model", 2) is None


def test_the_benchmark_builds_and_gives_all_figures() -> None:
    figures = measure.run_benchmark("any", 1, {"L1d": 32 << 10, "L2": 1 << 20}, 0.01)
    assert set(figures) == {*measure.FIGURES, *measure.COSTS, "levels"}
    assert all(value > 1e8 for value in [*figures["levels"].values(), *(figures[name] for name in measure.FIGURES)])
    assert set(figures["levels"]) == {"L1d", "L2"}
    assert all(0 < figures[name] < 1e-2 for name in measure.COSTS)


@pytest.mark.parametrize("name", [name for name in known_targets() if name != "cpu"])
def test_every_sheet_is_complete_and_names_its_source(name: str) -> None:
    sheet = Target.load(name)
    assert sheet.name == name
    assert sheet.source
    assert sheet.arch
    assert sheet.peak("float16") > sheet.peak("float32") > 1e12
    assert sheet.bandwidth > 1e11
    assert sheet.shared_memory > 0


def test_a_dtype_the_sheet_does_not_name_runs_at_float32_rate() -> None:
    assert Target.load("t4").peak("bfloat16") == Target.load("t4").peak("float32")


def test_an_unknown_target_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"did you mean h100\?"):
        Target.load("h10")


def test_a_sheet_of_the_users_own_is_found_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_TARGETS", str(tmp_path))
    sheet = tmp_path / "mychip.toml"
    sheet.write_text('title = "x"\nkind = "ascend"\ncores = 8\nbandwidth = 1e11\nsource = "me"\n')
    assert Target.load("mychip").kind == "ascend"
    for wrong in ('kind = "cuda"', 'kind = "toaster"\nsource = "me"', "=", 'kind = "cuda"\nsource = "me"\nspeed = 3'):
        sheet.write_text(wrong)
        with pytest.raises(ConfigError, match=r"mychip\.toml"):
            Target.load("mychip")


def test_features_and_model_come_from_cpuinfo(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(
        "processor : 0\nmodel name\t: Fast 9000\ncpu family: 6\nmodel : 1\nflags\t: fpu avx2 fma avx512f\n\nprocessor: 1\n"
    )
    info = cpu_info(file)
    assert info["model"] == "Fast 9000 (6-1)"
    features = cpu_features(info)
    assert features == ("fma", "avx2", "avx512f")
    assert flops_per_cycle(features) == 64
    assert cpu_info(tmp_path / "missing")["model"]


def test_a_sum_cannot_use_the_way_back_to_memory() -> None:
    """Both ways together move more than either by itself: what is only read takes as long as reading does."""
    both = Target("cpu", "cpu", "a CPU", cores=2, bandwidth=80e9, read_bandwidth=50e9, write_bandwidth=40e9)
    assert both.memory_seconds(50e9, 0) == 1.0
    assert both.memory_seconds(0, 40e9) == 1.0
    assert both.memory_seconds(40e9, 40e9) == 1.0
    plain = Target("cpu", "cpu", "a CPU", cores=2, bandwidth=80e9)
    assert plain.memory_seconds(80e9, 0) == 1.0
