"""Counts the bytes a task would need, before a byte is allocated: a callable in, the peak of live tensor memory out.

The callable runs on fake tensors, which have shapes and lifetimes but no memory; a dispatch mode adds up the storages that are
alive. So a task of 100 GB is refused with a sentence, where running it would get the process killed.
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Footprint:
    """Bytes of live tensors at the worst moment, and what remains when the callable has returned."""

    peak: int
    kept: int


class _LiveBytes(TorchDispatchMode):  # type: ignore[misc]
    """Follows every storage from its birth to its collection."""

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._count(leaf)
        return result

    def _count(self, tensor: Any) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.live -= size


def measure(run: Callable[[], Any]) -> Footprint:
    """The footprint of `run`. When it cannot finish on fake tensors (it reads values, or raises), what it held until then."""
    counter = _LiveBytes()
    kept = 0
    with quietly("torch._subclasses.fake_tensor"), torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True), counter:
        try:
            result = run()
            kept = counter.live
            del result
        except Exception:
            return Footprint(counter.peak, kept)
    return Footprint(counter.peak, kept)


@contextlib.contextmanager
def quietly(name: str) -> Iterator[None]:
    """torch logs a traceback for every operator that refuses its shapes; the real run tells the user in one sentence."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def available_bytes() -> int:
    """Memory that can still be used, by the machine's and by the control group's reckoning (its page cache counts as free)."""
    meminfo = Path("/proc/meminfo").read_text().split()
    available = int(meminfo[meminfo.index("MemAvailable:") + 1]) * 1024
    for folder, limit, used in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            room = int(Path(folder, limit).read_text()) - int(Path(folder, used).read_text())
            stat = dict(line.split() for line in Path(folder, "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        cache = int(stat.get("total_inactive_file", stat.get("inactive_file", 0))) + int(stat.get("active_file", 0))
        available = min(available, room + cache)
    return max(available, 0)
