"""One configuration in four layers: who wins, where a value came from, and what a mistake says."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.core.config import Settings, load
from kernelwright.core.errors import ConfigError


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import os

    for name in [name for name in os.environ if name.startswith("KERNELWRIGHT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults_alone() -> None:
    loaded = load()
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_each_layer_overrides_the_one_below(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = clean / "kernelwright.toml"
    file.write_text('track = "hybrid"\nthreads = 3\nclock_seconds = 9.0\n')
    monkeypatch.setenv("KERNELWRIGHT_THREADS", "4")
    monkeypatch.setenv("KERNELWRIGHT_CLOCK_SECONDS", "2.5")
    loaded = load({"clock_seconds": 1.0, "target": None})
    assert (loaded.settings.track, loaded.settings.threads, loaded.settings.clock_seconds) == ("hybrid", 4, 1.0)
    assert loaded.origins["track"] == str(file)
    assert loaded.origins["threads"] == "KERNELWRIGHT_THREADS"
    assert loaded.origins["clock_seconds"] == "flag"
    assert loaded.origins["target"] == "default"


def test_the_nearest_file_upwards_counts(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clean / "kernelwright.toml").write_text("threads = 1\n")
    inner = clean / "a" / "b"
    inner.mkdir(parents=True)
    assert load(start=inner).settings.threads == 1
    (clean / "a" / "kernelwright.toml").write_text("threads = 2\n")
    assert load(start=inner).settings.threads == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trak = 'pure'", r"kernelwright\.toml: unknown key 'trak'; did you mean track\?"),
        ("track = 'fast'", r"kernelwright\.toml: track = 'fast': .*'pure' or 'hybrid'"),
        ("threads = -1", "threads = -1"),
        ("track =", "cannot be read as TOML"),
    ],
)
def test_a_mistake_in_the_file_names_the_file_and_the_key(clean: Path, text: str, words: str) -> None:
    (clean / "kernelwright.toml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        load()


def test_a_wrong_variable_and_a_wrong_flag_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="--clock-seconds"):
        load({"clock_seconds": 0})
    monkeypatch.setenv("KERNELWRIGHT_TIMING", "perhaps")
    with pytest.raises(ConfigError, match="KERNELWRIGHT_TIMING"):
        load()


def test_a_variable_that_is_no_setting_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_TRAK", "pure")
    monkeypatch.setenv("KERNELWRIGHT_DEBUG", "1")
    assert load().ignored == ("KERNELWRIGHT_TRAK",)


def test_a_config_file_named_by_the_environment_must_exist(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_CONFIG", str(clean / "none.toml"))
    with pytest.raises(ConfigError, match="not a file"):
        load()
