"""The proof of a sketch over all its dynamic sizes, as a verdict tells it.

In: a sketch's text (all of them, where a kernel file has several variants). Out: a `SizeProof` with one sentence: `proved for x[0] in
1..4096`, the access that nobody could prove, or the sizes at which one breaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.core.errors import SketchError
from kernelwright.core.task.dynamic import SizeSymbol
from kernelwright.core.verdict import ProofGap, SizeProof
from kernelwright.sketch import nodes
from kernelwright.sketch.check.all_sizes import Finding
from kernelwright.sketch.check.rules import Examination, examine
from kernelwright.sketch.index import polynomial
from kernelwright.sketch.parse import parse

NO_SKETCH = "nothing is proved: the kernel carries no sketch (lifting makes one for the sizes of the example only)"


def proof_of_texts(texts: Sequence[str]) -> SizeProof:
    """The proof of all sketches of a kernel file, which are strangers' text: whatever is wrong with it is in the answer."""
    if not texts:
        return SizeProof(outcome="unproved", statement=NO_SKETCH)
    found = []
    for text in texts:
        try:
            sketch = parse(text)
            proof = size_proof(sketch, examine(sketch), text)
        except (SketchError, RecursionError, OverflowError, MemoryError, ValueError) as error:
            return SizeProof(outcome="unproved", statement=f"nothing is proved: the sketch cannot be read: {error}"[:300])
        if proof is None:
            return SizeProof(outcome="unproved", statement="nothing is proved: the sketch in the kernel file has fixed sizes")
        found.append(proof)
    worst = next((p for kind in ("refuted", "unproved") for p in found if p.outcome == kind), found[0])
    if len(found) == 1:
        return worst
    ranges = " or ".join(dict.fromkeys(p.ranges for p in found))
    statement = f"{len(found)} variants proved for {ranges}" if worst.outcome == "proved" else worst.statement
    return worst.model_copy(
        update={
            "statement": statement,
            "ranges": ranges,
            "accesses": sum(p.accesses for p in found),
            "by_solver": sum(p.by_solver for p in found),
        }
    )


def size_proof(sketch: nodes.Sketch, examination: Examination, text: str = "") -> SizeProof | None:
    """What was shown for every size, of a sketch that was examined; None for one without dynamic sizes. `text` is where the lines are."""
    if not any(size.dynamic for size in sketch.sizes):
        return None
    labels = {size.name: _label(sketch, size.name) for size in sketch.sizes if size.dynamic}
    ranges = ", ".join(f"{labels[size.name]} in {_range(size)}" for size in sketch.sizes if size.dynamic)
    settled, lines = examination.settled, text.splitlines()
    if settled is None:
        gaps = tuple(ProofGap(line=fault.line, reason=fault.reason) for fault in examination.faults)
        return SizeProof(outcome="unproved", statement=f"nothing is proved: {gaps[0].reason}", ranges=ranges, open=gaps)
    refuted = tuple(_gap(finding, labels, lines) for finding in settled.refuted)
    undecided = tuple(_gap(finding, labels, lines) for finding in settled.undecided)
    told = len(settled.refuted) + len(settled.undecided)
    if len(examination.faults) > told:  # faults of another kind: what stands around them was not looked at
        known = {finding.reason for finding in settled.undecided}
        undecided += tuple(
            ProofGap(line=fault.line, reason=fault.reason)
            for fault in examination.faults
            if fault.reason not in known and not any(fault.reason.startswith(f.reason) for f in settled.refuted)
        )
    if refuted:
        statement = f"refuted at {refuted[0].at}: {_place(refuted[0])}"
    elif undecided:
        statement = f"not proved for {ranges}: {_place(undecided[0])}"
    else:
        statement = f"proved for {ranges}"
    if settled.trusted and not refuted and not undecided:
        where = ", ".join(str(line) for line in dict.fromkeys(settled.trusted))
        statement += f", but for positions that are read from data (line{'s' if ',' in where else ''} {where})"
    return SizeProof(
        outcome="refuted" if refuted else "unproved" if undecided else "proved",
        statement=statement,
        ranges=ranges,
        accesses=settled.by_algebra + settled.by_solver + told,
        by_solver=settled.by_solver,
        refuted=refuted,
        open=undecided,
        trusted_lines=tuple(dict.fromkeys(settled.trusted)),
    )


def _range(size: nodes.Size) -> str:
    return SizeSymbol(size.name, size.low, size.high, size.multiple_of).range


def _label(sketch: nodes.Sketch, name: str) -> str:
    """The plainest place where a size can be seen: `x[0]`; its own name where no input shows it."""
    for tensor in sketch.tensors:
        if tensor.role == "input":
            for axis, extent in enumerate(tensor.shape):
                if polynomial(extent).atom == name:
                    return f"{tensor.name}[{axis}]"
    return name


def _gap(finding: Finding, labels: Mapping[str, str], lines: Sequence[str]) -> ProofGap:
    at = ", ".join(f"{labels.get(name, name)} = {value}" for name, value in finding.sizes.items())
    source = lines[finding.line - 1].strip() if 0 < finding.line <= len(lines) else ""
    return ProofGap(line=finding.line, reason=finding.reason, source=source, at=at)


def _place(gap: ProofGap) -> str:
    return f"line {gap.line}: {gap.reason}" if gap.line else gap.reason
