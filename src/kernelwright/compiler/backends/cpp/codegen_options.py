"""What the C++ backend may do one way or another without changing what is computed: the options that a search tries.

In: choices by name (`OPTIONS` of a kernel file, a point of a search). Out: `CodegenOptions`, which every part of it asks. A field's
default is what was best over our suites; its domain lists what is worth trying. Nothing here changes results beyond the order of
additions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from kernelwright.core.errors import ConfigError

NEVER = 1 << 40


def option(default: int, *domain: int, sign: str = "") -> int:
    """A field with the values worth trying, in their natural order; it can matter only to code in which its sign is found."""
    made: int = field(default=default, metadata={"domain": domain, "sign": re.compile(sign)})
    return made


@dataclass(frozen=True)
class CodegenOptions:
    """One way to write a kernel."""

    parallel_above: int = option(48 << 10, 12 << 10, 48 << 10, 192 << 10, NEVER)
    """Elements (weighted by cost) below which waking a second thread costs more than it saves: about 10 µs of work."""
    dynamic: int = option(0, 0, 1, 4, sign="omp parallel")
    """Iterations of a parallel loop that a thread takes at a time from those left; 0: every thread gets its share beforehand, unless
    iterations differ in length."""
    places: int = option(4, 1, 2, 4, 8, sign="omp parallel")
    """Places of memory that a loop over much of it visits in turn (streams.py)."""
    stream_bytes: int = option(8 << 20, 1 << 20, 8 << 20, 32 << 20, NEVER)
    """Calls that touch this many bytes stream outputs of at least a fourth of it to memory: what two of the eight cores that share
    32 MiB of last-level cache on servers have of it. Such an output is seldom in the cache before it is written, and a plain store
    would read it first: a third of what a pointwise kernel moves (an outer product of 16 MB: 0.51 ms streamed, 0.74 ms stored)."""
    strip: int = option(1024, 512, 1024, 2048, sign="alignas")
    """Elements computed into a strip before they are streamed: more would push the inputs out of the first cache (measured)."""
    fetch: int = option(1, 0, 1, sign="__builtin_prefetch")
    """Whether the row of the next iteration is fetched while this one is worked on."""
    lane_bytes: int = option(128, 64, 128, 256, sign=r"_lanes\[")
    """A reduction's lanes: four AVX2 registers, enough to hide the latency of an addition."""
    abreast: int = option(4, 1, 2, 4, 8, sign="Vector")
    """Vectors worked on side by side: as many as hide the latency of a multiplication and still fit the registers."""
    keep_cost: int = option(4, 2, 4, 16)
    """Two nests need it: keep what costs more than this many cycles a vector; a store and a load cost about two."""
    pack_above_rows: int = option(12, 1, 12, NEVER, sign="gemm_(tile|packing)<")
    """B is copied into panels if at least this many rows of A use it: two blocks of the micro-kernel."""
    copy_left: int = option(1, 0, 1, 2, sign="gemm_(tile|packing)<")
    """A transposed A of a product is copied into blocks never, where its elements crowd few sets of a cache, or always."""
    registers: int = option(0, 0, 304, 402, 502, sign="gemm_(tile|packing)<")
    """The block of registers of a product, hundreds rows and ones vectors of columns; 0: as the machine's registers allow."""
    unroll: int = option(4, 1, 2, 4, 8, sign="gemm_(tile|packing)<")
    """Steps of a product's innermost loop that are written out."""
    interleave: int = option(-1, -1, 0, 1)
    """Whether the compiler unrolls and mixes the steps of loops: -1 where they hold long polynomials."""
    optimize: int = option(3, 2, 3)
    """The compiler's level."""

    @classmethod
    def of(cls, options: Mapping[str, int]) -> CodegenOptions:
        """The default, with these options; one that is unknown is told with those that exist."""
        unknown = sorted(set(options) - set(DOMAINS))
        if unknown:
            raise ConfigError(f"C++ has no option {unknown[0]!r}; it has {', '.join(DOMAINS)}")
        return cls(**options)

    @property
    def changed(self) -> dict[str, int]:
        """What differs from the default."""
        return {name: value for name, value in asdict(self).items() if value != DEFAULTS[name]}


DEFAULTS: dict[str, int] = asdict(CodegenOptions())
DOMAINS: dict[str, tuple[int, ...]] = {item.name: item.metadata["domain"] for item in fields(CodegenOptions)}


def worth_turning(kernel: str) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Name → (default, domain) of the options that may matter to a kernel written with the default of all of them."""
    return {
        item.name: (DEFAULTS[item.name], DOMAINS[item.name])
        for item in fields(CodegenOptions)
        if item.metadata["sign"].search(kernel)
    }
