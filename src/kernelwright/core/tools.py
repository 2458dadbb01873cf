"""What of this machine something needs: a program or a Python package in, a `Tool` out, found with its version or missing with the
command that adds it. Nothing is imported; programs are asked for their version."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """One thing that is needed. `found` is its name and version, empty where it is missing; `add` is how to get it; `without` is what is
    lost where it is missing, of a tool that can be done without."""

    name: str
    found: str = ""
    add: str = ""
    without: str = ""

    @property
    def lacking(self) -> bool:
        """Whether nothing goes without it, and it is not there."""
        return not self.found and not self.without

    def __str__(self) -> str:
        return self.found or (f"no {self.name}, so {self.without}" if self.without else f"{self.name} missing")


def told(tools: Iterable[Tool]) -> tuple[bool, str, str]:
    """Whether all that must be there is, what there is in words, and what adds the rest."""
    listed = list(tools)
    missing = [tool.add for tool in listed if not tool.found and tool.add]
    return not any(tool.lacking for tool in listed), "; ".join(map(str, listed)), "; ".join(missing)


def package(name: str, add: str = "", without: str = "") -> Tool:
    """A Python package."""
    version = package_version(name)
    return Tool(name, f"{name} {version}" if version else "", add or f"pip install {name}", without)


def program(*names: str, add: str, without: str = "") -> Tool:
    """The first of these programs that is there and runs."""
    found = next((version for name in names if (version := program_version(name))), "")
    return Tool(names[0], found, add, without)


def program_version(name: str) -> str | None:
    """The first line that says a version, or None if the program is not there or does not run."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        lines = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    versions = (re.search(r"\d+\.\d+(\.\d+)?", line) for line in lines if "opyright" not in line)
    return next((f"{name} {found.group()}" for found in versions if found), path)


def package_version(name: str) -> str | None:
    """The installed version without importing the package: torch alone would take seconds."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
