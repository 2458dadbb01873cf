"""A piece on trial: designed, built, held against eager on real inputs, raced; the finding is kept for the next process.

In: a piece's graph. Out: `Trial`, whose `finding` says who runs it and why. Designs come one after the other, builds run beside them, and
what is raced runs alone. A race that was run on a busy machine is run again by the next process that finds the machine quiet.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule

from kernelwright.api import libraries
from kernelwright.api.bounds import complaint, tensors
from kernelwright.api.machine_load import quiet_now
from kernelwright.api.piece import Piece, Recipe, build, design, identity
from kernelwright.api.race import race
from kernelwright.core.errors import KernelwrightError
from kernelwright.core.folders import cache_folder


@dataclass
class Finding:
    """Whether a piece is used, and what was measured: seconds of a call, how many times as fast as eager with its interval, or `why` not.
    `operator` is one that the Designer refused."""

    used: bool
    eager: float = 0.0
    gain: float = 0.0
    low: float = 0.0
    high: float = 0.0
    why: str = ""
    operator: str = ""
    recipe: Recipe | None = None
    seconds: float = 0.0
    """What it took to find this out."""
    quiet: bool = True
    """Whether the machine did nothing else meanwhile."""
    won: bool = True
    """Whether it is faster alone, too."""


@dataclass
class Trial:
    """One distinct piece. `finding` is known once it was `judged`, or from an earlier process."""

    graph: GraphModule
    key: str
    finding: Finding | None = None
    raced: bool = True
    strides: list[tuple[int, ...] | None] = field(default_factory=list)
    doubted: Finding | None = None
    """What was found on a busy machine; it holds where a new race is no better."""
    designs: int = 1
    """How many designs are built and raced."""
    _built: list[Future[Recipe]] = field(default_factory=list)
    _began: float = 0.0

    @classmethod
    def of(
        cls,
        graph: GraphModule,
        inputs: Sequence[Any],
        strides: list[tuple[int, ...] | None],
        *,
        raced: bool = True,
        designs: int = 1,
    ) -> Trial:
        """A trial, already decided where a process of this machine has left its finding. One that is not `raced` is used if right.
        `strides` has those of results that the caller of the whole graph sees, where they are not row-major."""
        key = libraries.digest(identity(graph, inputs), strides, raced, *([designs] if designs > 1 else []))
        found = _read(key)
        if found is not None and not found.quiet and found.recipe is not None and quiet_now():
            return cls(graph, key, None, raced=raced, strides=strides, doubted=found, designs=designs)
        return cls(graph, key, found, raced=raced, strides=strides, designs=designs)

    def begin(self, inputs: Sequence[Any], pool: ThreadPoolExecutor) -> None:
        """Designs now and builds beside; only shapes of the inputs matter."""
        self._began = time.monotonic()
        if self.doubted is not None:
            return
        try:
            made = design(self.graph, inputs, self.designs)
        except KernelwrightError as error:
            self._settle(Finding(False, why=str(error), operator=getattr(error, "operator", "")))
        except (RecursionError, AssertionError, ValueError, TypeError, KeyError, IndexError, ArithmeticError) as error:
            self._settle(Finding(False, why=f"the designer failed: {type(error).__name__}: {str(error)[:120]}"))
        else:
            self._built = [pool.submit(build, library) for library in made]

    def wait(self) -> None:
        """Until the builds are over, however they end."""
        wait(self._built)

    def judge(self, inputs: Sequence[Any], *, least: float = 1.0) -> Finding:
        """Held against eager and raced on these inputs. Used where it is faster beyond doubt; `least` below 1 lets in what may lose a
        little alone."""
        if self.finding is None:
            try:
                self._settle(self._judged(inputs, least))
            except (RuntimeError, IndexError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
                said = (str(error).splitlines() or [""])[0][:160]  # a fault of ours costs this piece, not the graph
                self._settle(Finding(False, why=f"trying it failed: {type(error).__name__}: {said}"))
        assert self.finding is not None
        return self.finding

    def piece(self) -> Piece:
        """The callable; only for a trial that is used."""
        assert self.finding is not None
        assert self.finding.recipe is not None
        return Piece(self.finding.recipe, self.strides)

    def _judged(self, inputs: Sequence[Any], least: float) -> Finding:
        if self.doubted is not None:
            assert self.doubted.recipe is not None
            found = self._raced(inputs, least, self.doubted.recipe)
            return found if found.quiet else self.doubted
        tried = [self._one(built, inputs, least) for built in self._built]
        return max(tried, key=lambda f: (f.used, f.gain))

    def _one(self, built: Future[Recipe], inputs: Sequence[Any], least: float) -> Finding:
        try:
            recipe = built.result()
        except (libraries.BuildFailed, KernelwrightError) as error:
            return Finding(False, why=f"the build failed: {str(error)[:200]}")
        piece, eager = Piece(recipe, self.strides), self.graph.forward
        native = [t.clone() if isinstance(t, torch.Tensor) else t for t in tensors(eager(*inputs))]
        wrong = complaint(self.graph, inputs, native, tensors(piece(*inputs)))
        if wrong:
            return Finding(False, why=f"not right: {wrong}", recipe=recipe)
        if not self.raced:
            return Finding(True, recipe=recipe)
        return self._raced(inputs, least, recipe)

    def _raced(self, inputs: Sequence[Any], least: float, recipe: Recipe) -> Finding:
        piece, eager = Piece(recipe, self.strides), self.graph.forward
        outcome = race(lambda: eager(*inputs), lambda: piece(*inputs), seconds=0.15)
        used = outcome.won if least >= 1 else outcome.gain >= least
        why = "" if used else "no faster than eager"
        if not outcome.quiet:
            why = f"{why or 'faster in every race'}, on a busy machine"
        return Finding(
            used,
            outcome.eager,
            outcome.gain,
            outcome.low,
            outcome.high,
            why,
            recipe=recipe,
            quiet=outcome.quiet,
            won=outcome.won,
        )

    def _settle(self, finding: Finding) -> None:
        finding.seconds = time.monotonic() - self._began
        self.finding = finding
        libraries.write(_note(self.key), json.dumps(asdict(finding)))


def _note(key: str) -> Any:
    return cache_folder("pieces") / f"{key}.json"


def _read(key: str) -> Finding | None:
    try:
        found = json.loads(_note(key).read_text())
        recipe = found.pop("recipe")
        made = Finding(**found)
        if recipe is not None:
            made.recipe = Recipe.read(recipe)
            if not Path(made.recipe.library).exists():
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return made
