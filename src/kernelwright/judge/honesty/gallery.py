"""The gallery: cheats that must be rejected for the right reason, beside honest kernels that must be accepted.

1. A gallery is a folder with `tasks/`, `cheats/` and `honest/`. Each kernel starts with `# key: value` lines: `task`, and
   for a cheat `status` (alternatives by `|`), `reason` (a pattern that the verdict's reason must match) and `entry` (of the
   catalogue); further `track`, `timing: yes` (only the timed phase shows it), `slow: yes` (builds for half a minute).
2. `read` turns the folder into `Exhibit`s; a header that is incomplete is an error, so that no file is silently left out.
3. `examine` puts one exhibit before a judge; `Rates` counts what the judge got wrong.

The files themselves are data: nothing here imports or runs them, only the judge's sandboxed worker does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernelwright.core.errors import KernelwrightError
from kernelwright.core.verdict import Status, Track, Verdict

if TYPE_CHECKING:
    from kernelwright.judge.verify import Judge

HEADER = re.compile(r"# (\w+): (.*\S)")
KEYS = {"task", "status", "reason", "entry", "track", "timing", "slow"}

Kind = Literal["cheat", "honest"]


@dataclass(frozen=True)
class Exhibit:
    """One kernel file of the gallery and what the judge must say of it."""

    path: Path
    kind: Kind
    task: Path
    statuses: tuple[str, ...]
    reason: str = ""
    entry: str = ""
    track: Track = "pure"
    timing: bool = False
    slow: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.path.stem}"

    @property
    def fast(self) -> bool:
        """Belongs to the part that every test run can afford: no timed phase, no long build, no waiting for a time limit."""
        return not self.slow and not self.timing and self.statuses != (Status.timed_out,)


@dataclass(frozen=True)
class Outcome:
    """What the judge said of an exhibit; `complaint` is empty when that was as expected."""

    exhibit: Exhibit
    verdict: Verdict
    complaint: str

    @property
    def ok(self) -> bool:
        return not self.complaint


@dataclass(frozen=True)
class Rates:
    """The judge's errors over a set of outcomes. `misnamed` cheats were rejected, but for another reason than theirs."""

    cheats: int
    false_accepts: int
    misnamed: int
    honest: int
    false_rejects: int

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Rates:
        outcomes = list(outcomes)
        cheats = [one for one in outcomes if one.exhibit.kind == "cheat"]
        honest = [one for one in outcomes if one.exhibit.kind == "honest"]
        return cls(
            cheats=len(cheats),
            false_accepts=sum(one.verdict.ok for one in cheats),
            misnamed=sum(not one.verdict.ok and not one.ok for one in cheats),
            honest=len(honest),
            false_rejects=sum(not one.ok for one in honest),
        )


def locate() -> Path:
    """The gallery of a source checkout. An installed package has none: then a folder must be named."""
    folder = Path(__file__).resolve().parents[4] / "tests" / "gallery"
    if not folder.is_dir():
        raise KernelwrightError("the gallery is not part of an installed package; name its folder with --gallery DIR")
    return folder


def read(folder: Path) -> list[Exhibit]:
    """All exhibits of a gallery: cheats first, each kind in the order of its file names."""
    found = [
        read_one(path, kind, folder / "tasks")
        for kind, place in (("cheat", "cheats"), ("honest", "honest"))
        for path in sorted((folder / place).glob("*.py"))
    ]
    if not found:
        raise KernelwrightError(f"{folder} has no cheats/*.py and no honest/*.py")
    return found


def read_one(path: Path, kind: str, tasks: Path) -> Exhibit:
    """One exhibit from its header."""
    fields = header(path.read_text())
    needed = {"task", "status", "reason", "entry"} if kind == "cheat" else {"task"}
    if missing := needed - set(fields):
        raise KernelwrightError(f"{path}: its header lacks {', '.join(sorted(missing))}")
    if unknown := set(fields) - KEYS:
        raise KernelwrightError(f"{path}: its header has unknown keys: {', '.join(sorted(unknown))}")
    task = tasks / f"{fields['task']}.py"
    if not task.is_file():
        raise KernelwrightError(f"{path}: its task {fields['task']!r} is not in {tasks}")
    statuses = tuple(fields.get("status", Status.correct).split("|"))
    if wrong := set(statuses) - set(Status):
        raise KernelwrightError(f"{path}: {', '.join(sorted(wrong))} is no status of a verdict")
    if fields.get("track", "pure") not in ("pure", "hybrid"):
        raise KernelwrightError(f"{path}: the track is pure or hybrid")
    return Exhibit(
        path=path,
        kind="cheat" if kind == "cheat" else "honest",
        task=task,
        statuses=statuses,
        reason=fields.get("reason", ""),
        entry=fields.get("entry", ""),
        track="hybrid" if fields.get("track") == "hybrid" else "pure",
        timing=fields.get("timing") == "yes",
        slow=fields.get("slow") == "yes",
    )


def header(text: str) -> dict[str, str]:
    """The `# key: value` lines at the top of a file, up to the first line that is none."""
    fields = {}
    for line in text.splitlines():
        found = HEADER.fullmatch(line.rstrip())
        if not found:
            break
        fields[found[1]] = found[2]
    return fields


def examine(judge: Judge, exhibit: Exhibit) -> Outcome:
    """Put one exhibit before the judge. The timed phase runs only where the exhibit asks for it: most must fall before."""
    verdict = judge.verify(
        exhibit.task, exhibit.path, track=exhibit.track, timing=exhibit.timing, compile_contender=False, budget_s=2.0
    )
    return Outcome(exhibit, verdict, complaint(exhibit, verdict))


def complaint(exhibit: Exhibit, verdict: Verdict) -> str:
    """What is wrong about a verdict on an exhibit, or nothing."""
    if verdict.status not in exhibit.statuses:
        return f"expected {' or '.join(exhibit.statuses)}"
    if exhibit.reason and not re.search(exhibit.reason, verdict.reason, re.IGNORECASE):
        return "rejected for another reason than its own"
    return ""
