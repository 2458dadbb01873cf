"""Whether the shipped page is the one that these sources make: `python web/stamp.py` checks, `--write` (of `make web`) records.

Needs no Node: what is recorded beside the build are two hashes, of the sources that it was made from and of the files that were made.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "kernelwright"
SITE, REPORT = PACKAGE / "web" / "site", PACKAGE / "jobs" / "bench" / "assets"
STAMP = SITE / "stamp.txt"


def sources() -> list[Path]:
    """What a build reads."""
    named = ["package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "vite.report.ts", "index.html"]
    return [*(HERE / name for name in named), *sorted(path for path in (HERE / "src").rglob("*") if path.is_file())]


def built() -> list[Path]:
    """What a build writes."""
    site = sorted(path for path in SITE.rglob("*") if path.is_file() and path != STAMP)
    return [*site, *(REPORT / name for name in ("report.js", "report.css"))]


def stamp() -> str:
    """Both hashes as the text that is recorded."""
    return f"sources {_hash(sources(), HERE)}\nbuilt {_hash(built(), PACKAGE)}\n"


def _hash(paths: list[Path], base: Path) -> str:
    found = hashlib.sha256()
    for path in paths:
        text = path.read_bytes().replace(b"\r\n", b"\n")
        found.update(f"{path.relative_to(base).as_posix()}\0{len(text)}\0".encode() + text)
    return found.hexdigest()


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        STAMP.write_text(stamp())
        return 0
    if not STAMP.is_file() or STAMP.read_text() != stamp():
        print("the shipped page was not built from web/ as it is; run: make web", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
