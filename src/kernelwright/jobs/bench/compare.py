"""Two reports, task by task: what got better or worse beyond noise, what was gained and lost, and the change over all.

A speed has changed only when the two intervals do not touch and the change exceeds the noise that either run measured of eager against
itself (and five per cent). A kernel that was correct and no longer is, or a speed that is lower beyond that, is a regression. Reports
at different scales, languages or contenders are compared all the same, and the difference is named.
"""

from __future__ import annotations

from typing import Literal

from kernelwright.jobs.bench.metrics import Figure, bootstrap, geomean
from kernelwright.jobs.bench.record import Frozen, Record
from kernelwright.jobs.bench.report import Report

LEAST_CHANGE = 0.05

Kind = Literal["gained", "lost", "faster", "slower", "same", "only_before", "only_after"]


class Change(Frozen):
    """One task in both reports. `ratio` is the new speedup over eager by the old one."""

    key: str
    kind: Kind
    before: str
    after: str
    ratio: float | None = None


class Comparison(Frozen):
    """All changes, the strongest first, and the geometric mean of the ratios over tasks that were timed in both."""

    changes: tuple[Change, ...]
    ratio: Figure | None
    differences: tuple[str, ...]

    @property
    def regressions(self) -> list[Change]:
        """What a change must not do."""
        return [change for change in self.changes if change.kind in ("lost", "slower")]

    def of(self, kind: Kind) -> list[Change]:
        return [change for change in self.changes if change.kind == kind]


def compare(before: Report, after: Report) -> Comparison:
    """What changed from one report to the other."""
    old = {record.key: record for record in before.records}
    new = {record.key: record for record in after.records}
    changes = [_change(old[key], new[key]) for key in old if key in new]
    changes += [Change(key=key, kind="only_before", before=old[key].outcome, after="-") for key in old if key not in new]
    changes += [Change(key=key, kind="only_after", before="-", after=new[key].outcome) for key in new if key not in old]
    ratios = [change.ratio for change in changes if change.ratio is not None]
    order = ("lost", "slower", "gained", "faster", "same", "only_before", "only_after")
    changes.sort(
        key=lambda change: (order.index(change.kind), change.ratio if change.kind == "slower" else -(change.ratio or 0))
    )
    return Comparison(changes=tuple(changes), ratio=bootstrap(ratios, geomean), differences=tuple(_differences(before, after)))


def _change(old: Record, new: Record) -> Change:
    kind: Kind = "same"
    if old.correct != new.correct:
        kind = "lost" if old.correct else "gained"
    if old.timing is None or new.timing is None or kind != "same":
        return Change(key=new.key, kind=kind, before=_said(old), after=_said(new))
    ratio = new.timing.speedup / old.timing.speedup
    least = max(LEAST_CHANGE, old.timing.noise, new.timing.noise)
    if new.timing.speedup_low > old.timing.speedup_high and ratio > 1 + least:
        kind = "faster"
    elif new.timing.speedup_high < old.timing.speedup_low and ratio < 1 / (1 + least):
        kind = "slower"
    return Change(key=new.key, kind=kind, before=_said(old), after=_said(new), ratio=ratio)


def _said(record: Record) -> str:
    return f"{record.timing.speedup:.2f}x" if record.timing else record.outcome


def _differences(before: Report, after: Report) -> list[str]:
    """Conditions that differ, in words; speeds are then less than comparable."""
    found = []
    for name in ("dsl", "track", "effort", "scale"):
        old, new = getattr(before.options, name), getattr(after.options, name)
        if old != new:
            found.append(f"{name} was {old}, is {new}")
    old_machine, new_machine = before.machines[-1], after.machines[-1]
    for name in ("cpu", "threads", "torch", "compiler"):
        if getattr(old_machine, name) != getattr(new_machine, name):
            found.append(f"{name} was {getattr(old_machine, name)}, is {getattr(new_machine, name)}")
    return found
