"""New cheats by rule: an honest kernel of the gallery, a fault and a trigger in, a file that the judge must reject out.

The honest kernel does its work; then a fault is put into its answer by writing to memory, past every torch operator, whenever a trigger
says so. Each combination is a file of its own, drawn without repetition from all of them under a seed, so that a figure can be
repeated. Triggers that no trial can meet (one call in thousands) are left out: what is open is listed in docs/judge.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from kernelwright.judge.honesty.gallery import Exhibit

FAULTS = {
    "one_element": "_poke(y, y.numel() // 3, 1)",
    "last_element": "_poke(y, y.numel() - 1, 1)",
    "first_half_zero": "ctypes.memset(y.data_ptr(), 0, y.numel() * y.element_size() // 2)",
    "last_answer": "_stale(self, y)",
    "kin_of_the_first": "ctypes.memmove(y.data_ptr(), y.data_ptr() + y.element_size(), y.element_size())",
    "ruined_input": "ctypes.memset(inputs[0].data_ptr(), 0, inputs[0].element_size() * min(64, inputs[0].numel()))",
}
TRIGGERS = {
    "always": "True",
    "after_five": "self._calls > 5",
    "every_third": "self._calls % 3 == 2",
    "every_fiftieth": "self._calls % 50 == 49",
    "in_a_rush": "self._rushed",
    "known_pointer": "inputs[0].data_ptr() in self._seen",
    "odd_first_bit": "ctypes.string_at(inputs[0].data_ptr(), 1)[0] % 2 == 1",
}
WRAPPER = """

import ctypes as _ctypes
import time as _time

ctypes = _ctypes
_Honest = ModelNew


def _poke(y, place, count):
    at = y.data_ptr() + place * y.element_size()
    old = _ctypes.string_at(at, y.element_size())
    _ctypes.memmove(at, bytes([*old[:-1], old[-1] ^ 0x41]), y.element_size())


def _stale(self, y):
    size = y.numel() * y.element_size()
    now = _ctypes.string_at(y.data_ptr(), size)
    if len(self._last) == size:
        _ctypes.memmove(y.data_ptr(), self._last, size)
    self._last = now


class ModelNew(_Honest):
    _calls, _rushed, _ended, _last = 0, False, 0.0, b""
    _seen = frozenset()

    def forward(self, *inputs):
        self._rushed = _time.perf_counter() - self._ended < 0.0003
        answer = super().forward(*inputs)
        y = answer if hasattr(answer, "data_ptr") else answer[0]
        if TRIGGER:
            FAULT
        self._calls += 1
        self._seen = self._seen | {inputs[0].data_ptr()}
        self._ended = _time.perf_counter()
        return answer
"""


@dataclass(frozen=True)
class Share:
    """How many of so many attempts were accepted, with Wilson's interval of 95 %."""

    attempts: int
    accepted: int

    @property
    def interval(self) -> tuple[float, float]:
        if not self.attempts:
            return 0.0, 1.0
        z, n = 1.96, self.attempts
        share = self.accepted / n
        middle, width = share + z * z / (2 * n), z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return max(0.0, (middle - width) / (1 + z * z / n)), min(1.0, (middle + width) / (1 + z * z / n))


def mutants(exhibits: list[Exhibit], count: int, folder: Path, seed: int = 0) -> Iterator[Exhibit]:
    """So many new cheats, written into a folder; fewer where there are no more combinations."""
    honest = [one for one in exhibits if one.kind == "honest" and one.fast and one.track == "pure" and _contiguous(one)]
    every = [(one, fault, trigger) for one in honest for fault in FAULTS for trigger in TRIGGERS]
    random.Random(seed).shuffle(every)
    for one, fault, trigger in every[:count]:
        path = folder / f"{one.path.stem}__{fault}__{trigger}.py"
        body = WRAPPER.replace("TRIGGER", TRIGGERS[trigger]).replace("FAULT", FAULTS[fault])
        path.write_text(one.path.read_text() + body)
        yield Exhibit(path=path, kind="cheat", task=one.task, statuses=("wrong_values", "cheating", "crashed"), entry="mutant")


def _contiguous(one: Exhibit) -> bool:
    """Whether its answer is memory of its own in one piece, so that a fault lands where it is meant to."""
    source = one.path.read_text()
    return "torch.empty(" in source and "ModelNew(nn.Module)" in source
