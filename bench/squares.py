"""Products of square matrices of floats: the generated C++ kernel beside PyTorch eager (MKL or its like), over size.

    python bench/squares.py [--sizes N,N] [--seconds S] [--out bench/results/squares.json]

Calls of both alternate in one process and a time is the best of them (growth.py's race). Each size is checked against eager first. A
run replaces the sizes it measured in the file and writes the table beside it again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import types
from pathlib import Path
from typing import Any

from growth import race

SIZES = (512, 768, 1024, 1536, 2048, 3072, 4096)


def kernel(module: Any, pair: tuple[Any, Any]) -> Any:
    """The built-in mind's first design, built and loaded."""
    from kernelwright.compiler.backends.cpp.emit import lower
    from kernelwright.compiler.designer import design_module

    file = types.ModuleType("kernel")
    exec(compile(lower(design_module(module, pair)[0].sketch), "kernel.py", "exec"), file.__dict__)
    return file.ModelNew().eval()


def measured(size: int, seconds: float) -> dict[str, Any]:
    """Milliseconds and GFLOP/s of both at one size."""
    import torch

    class Product(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a @ b

    torch.manual_seed(0)
    pair = torch.randn(size, size), torch.randn(size, size)
    with torch.no_grad():
        ours = kernel(Product(), pair)
        torch.testing.assert_close(ours(*pair), pair[0] @ pair[1], rtol=1e-4, atol=1e-3)
        mine, eager = race([lambda x: ours(*x), lambda x: x[0] @ x[1]], pair, seconds)
    flops = 2.0 * size**3
    print(f"{size:5d}: {flops / mine / 1e9:6.1f} GFLOP/s, eager {flops / eager / 1e9:6.1f}, {eager / mine:.3f}x", flush=True)
    rates = {"gflops": round(flops / mine / 1e9, 1), "eager_gflops": round(flops / eager / 1e9, 1)}
    return {"size": size, "kernel_ms": round(mine * 1e3, 3), "eager_ms": round(eager * 1e3, 3)} | rates


def markdown(data: dict[str, Any]) -> str:
    """The curve as a table."""
    out = [
        "# Square products",
        "",
        f"`a @ b` of floats, best of alternating calls, `python bench/squares.py`; {data['machine']}, {data['threads']} threads, "
        f"torch {data['torch']}, {data['date']}.",
        "",
        "| n | kernel ms | eager ms | kernel GFLOP/s | eager GFLOP/s | over eager |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for r in data["rows"]:
        figures = (
            r["size"],
            r["kernel_ms"],
            r["eager_ms"],
            r["gflops"],
            r["eager_gflops"],
            f"{r['eager_ms'] / r['kernel_ms']:.2f}x",
        )
        out.append(f"| {' | '.join(map(str, figures))} |")
    return "\n".join(out) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sizes", default=",".join(map(str, SIZES)))
    arguments.add_argument("--seconds", type=float, default=5.0)
    arguments.add_argument("--out", type=Path, default=Path("bench/results/squares.json"))
    options = arguments.parse_args()
    threads = os.cpu_count() or 1
    os.environ["OMP_NUM_THREADS"] = str(threads)  # before torch starts its threads

    import torch

    from kernelwright.target.cpu import describe_host

    for size in map(int, options.sizes.split(",")):
        old = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
        points = {r["size"]: r for r in [*old, measured(size, options.seconds)]}
        about = {"date": datetime.date.today().isoformat(), "machine": describe_host().title, "torch": torch.__version__}
        data = about | {"threads": threads, "rows": [points[key] for key in sorted(points)]}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(data, indent=1) + "\n")
        options.out.with_suffix(".md").write_text(markdown(data))


if __name__ == "__main__":
    main()
