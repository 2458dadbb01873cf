"""Launches of CUDA sources, followed by their text; refusals at the lines of the author's file."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.compiler.backends.cuda_c import inline
from kernelwright.compiler.lift.cuda.block import follow
from kernelwright.compiler.lift.cuda.read import read
from kernelwright.compiler.lift.formulas.memory import Followed
from kernelwright.compiler.lift.formulas.refusal import Refused, place
from kernelwright.compiler.lift.launches import Launch, Seen


class Sources:
    """The launches of CUDA sources, followed by their text."""

    def __init__(self, seen: Seen, sources: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self.buffers, self.file = seen.trace.buffers, seen.source
        self.programs = [read(text, flags) for text, flags in sources]
        self.texts = [text for text, _ in sources]

    def __call__(self, launch: Launch) -> Followed:
        """What a launch writes."""
        number = self._program(launch)
        try:
            return follow(self.programs[number], launch, self.buffers)
        except Refused as refused:
            raise self._placed(self._headed(refused, number, launch), launch, self.texts[number]) from None

    def _headed(self, refused: Refused, number: int, launch: Launch) -> Refused:
        if refused.line:
            return refused
        head = self.programs[number].functions[str(launch.kernel)][0].line
        return Refused(head, f"{launch.name}: {refused.reason}")

    def refused(self, refused: Refused, launch: Launch) -> Refused:
        """A refusal about what a kernel computes, at the head of its function."""
        number = self._program(launch)
        return self._placed(self._headed(refused, number, launch), launch, self.texts[number])

    def _placed(self, refused: Refused, launch: Launch, cuda: str) -> Refused:
        """The same, with the line of the author's file. Lines count from the start of each text that an extension is built of."""
        pieces = sorted(cuda.split(inline.MARK), key=lambda piece: not ("__global__" in piece and str(launch.kernel) in piece))
        found = next((line for piece in pieces if (line := place(refused.line, piece, self.file))), 0)
        if refused.line and not found:
            return Refused(0, f"{refused.reason} (line {refused.line} of its CUDA source)")
        return Refused(found, refused.reason)

    def _program(self, launch: Launch) -> int:
        for number, program in enumerate(self.programs):
            if str(launch.kernel) in program.functions:
                return number
        raise Refused(0, f"the kernel {launch.name} is not in the sources")
