"""An output that was handed over, kept to compare with what its process says of it later: a bundle in, same or not out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from kernelwright.workers import bundle

HELD_BYTES = 256 << 20
"""Of outputs that are held and asked for again, all together; the first two, or one that is larger, are held whatever their size."""


@dataclass
class Held:
    """An output that the candidate sent, kept to compare with what it says later; of a large one only the digest (`fd` is -1)."""

    header: dict[str, Any]
    fd: int
    digest: bytes = b""

    @classmethod
    def of(cls, header: dict[str, Any], fd: int) -> Held:
        """Takes the descriptor over."""
        if os.fstat(fd).st_size <= HELD_BYTES:
            return cls(header, fd)
        try:
            return cls({}, -1, bundle.digest(header, fd))
        finally:
            os.close(fd)

    def same(self, header: Any, fd: int) -> bool:
        """Whether this bundle is what was sent before."""
        if not isinstance(header, dict):
            return False
        return bundle.digest(header, fd) == self.digest if self.digest else bundle.same(self.header, self.fd, header, fd)
