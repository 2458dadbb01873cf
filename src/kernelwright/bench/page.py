"""placeholder"""

from __future__ import annotations

from pathlib import Path

from kernelwright.bench.report import Report


def to_page(report: Report, folder: Path) -> str:
    return ""
