"""The one configuration model: defaults < `kernelwright.toml` < environment (`KERNELWRIGHT_*`) < flags.

In: the flags of a command. Out: `Loaded`, the settings and where each value came from. The file is the nearest
`kernelwright.toml` from the current folder upwards, or the one that `KERNELWRIGHT_CONFIG` names. Imported by commands when
they run, never at start-up.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from kernelwright.core.errors import ConfigError

PREFIX = "KERNELWRIGHT_"
OUTSIDE = {"CONFIG", "TARGETS", "DEBUG", "API_KEY", "TOKEN"}
"""Variables with our prefix that are not settings: where to look for files, whether to show tracebacks, and secrets."""


class Settings(BaseSettings):
    """Every setting of Kernelwright. A field's description is its documentation; `kernelwright config` prints it."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, validate_default=True)

    target: str = Field("cpu", description="hardware that kernels are for; a name that `kernelwright doctor` lists")
    track: Literal["pure", "hybrid"] = Field(
        "pure", description="whether library GEMM, convolution, sorting, FFT and linear algebra are allowed in a kernel"
    )
    timing: bool = Field(True, description="time a correct kernel against PyTorch")
    compile: bool = Field(True, description="time torch.compile too")
    clock_seconds: float = Field(
        5.0, gt=0, le=3600, description="seconds for a verdict's trials, and again for its timed rounds"
    )
    threads: int = Field(0, ge=0, le=4096, description="threads for every contender; 0 means one for each physical core")
    sandbox_tasks: bool = Field(
        False, description="run task files in the sandbox too, as those that come in by a browser always are"
    )
    triton_ascend: str = Field(
        "", description="an environment with triton-ascend, or its Python; empty: triton-ascend in the data folder"
    )
    store: str = Field("", description="where runs and answers are kept: a folder or a database URL; empty: the data folder")
    model: str = Field(
        "builtin", description="who thinks: builtin, openai:NAME, anthropic:NAME, URL:NAME, mailbox:DIR, replay:FILE"
    )
    designer_model: str = Field("", description="another model for the Designer; empty: the same as model")
    coder_model: str = Field("", description="another model for the Coder; empty: the same as model")
    base_url: str = Field("", description="server for openai:NAME and anthropic:NAME instead of the provider's own")
    max_cost: float | None = Field(None, gt=0, description="US dollars that one run may spend on models")
    max_tokens: int | None = Field(None, gt=0, description="tokens, in and out, that one run may spend on models")
    model_calls: int = Field(4, ge=1, le=256, description="calls of a model that may be open at once")
    model_timeout: float = Field(600.0, gt=0, description="seconds until a call of a model is given up")
    conductor: str = Field("", description="a TOML file with another table for the Conductor; empty: ours (show --table)")
    model_tools: bool = Field(True, description="models that can call tools may check, run and time before they answer")
    model_retries: int = Field(4, ge=0, le=20, description="times that a failed call of a model is tried again")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """All four layers arrive merged by `load`, which must know the origin of each value."""
        return (init_settings,)


@dataclass(frozen=True)
class Loaded:
    """The settings, and for each the layer it came from: "default", the file's path, the variable's name, or "flag"."""

    settings: Settings
    origins: dict[str, str]
    ignored: tuple[str, ...] = ()


def load(flags: dict[str, Any] | None = None, *, start: Path | None = None) -> Loaded:
    """Merge the four layers. A flag of None was not given. What cannot be understood is a ConfigError naming its place."""
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.model_fields, "default")
    path = find_file(start or Path.cwd())
    if path:
        for key, value in _read(path).items():
            values[key], origins[key] = value, str(path)
    ignored = []
    for variable, text in sorted(os.environ.items()):
        name = variable.removeprefix(PREFIX)
        if name == variable or name in OUTSIDE:
            continue
        if name.lower() in origins:
            values[name.lower()], origins[name.lower()] = text, variable
        else:
            ignored.append(variable)
    for key, value in (flags or {}).items():
        if value is not None:
            values[key], origins[key] = value, "flag"
    try:
        return Loaded(Settings(**values), origins, tuple(ignored))
    except ValidationError as error:
        problem = error.errors()[0]
        key = str(problem["loc"][0])
        where = f"--{key.replace('_', '-')}" if origins[key] == "flag" else f"{origins[key]}: {key}"
        raise ConfigError(f"{where} = {problem['input']!r}: {problem['msg'].lower()}") from error


def find_file(start: Path) -> Path | None:
    """The nearest `kernelwright.toml` from `start` upwards, or the one named by the environment."""
    named = os.environ.get(PREFIX + "CONFIG")
    if named:
        if not Path(named).is_file():
            raise ConfigError(f"{PREFIX}CONFIG names {named}, which is not a file")
        return Path(named)
    folders = [start.resolve(), *start.resolve().parents]
    return next((folder / "kernelwright.toml" for folder in folders if (folder / "kernelwright.toml").is_file()), None)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as TOML: {error}") from error
    for key in data:
        if key not in Settings.model_fields:
            close = difflib.get_close_matches(key, Settings.model_fields, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; known are {', '.join(Settings.model_fields)}"
            raise ConfigError(f"{path}: unknown key {key!r}{hint}")
    return data
