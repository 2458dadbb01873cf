"""The texts of the kernels that the built-in mind writes, kept in a folder, so that a change of structure can show that it changed none.

    python bench/kernel_texts.py before/                      # every task of core, fused and modern in C++
    python bench/kernel_texts.py before/ --dsl triton --every 3
    python bench/kernel_texts.py --compare before/ after/     # equal but for names? what differs is listed

Two texts are equal but for names when their tokens are, after each identifier was replaced by the number of its first appearance.
"""

from __future__ import annotations

import argparse
import re
import sys
from multiprocessing import get_context
from pathlib import Path

from kernelwright import suites

SUITES = ("core", "fused", "modern")
WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")


def write(job: tuple[str, str, str, str]) -> str:
    """One task's sketch and kernel into the folder; a failure is a text too."""
    folder, suite, name, dsl = job
    from kernelwright.core.job import JobSpec
    from kernelwright.core.task import Task
    from kernelwright.run.drafts import texts

    task = Task.from_source(suites.find(f"{suite}/{name}").source, path=f"{suite}/{name}.py", class_name="Model")  # type: ignore[union-attr]
    try:
        drafts = texts(JobSpec(task, dsl), 1)
        text = f"{drafts[0].sketch}\n# {'-' * 60}\n{drafts[0].kernel.source}"
    except Exception as error:
        text = f"failed: {type(error).__name__}: {error}"
    (Path(folder) / f"{suite}-{name}-{dsl}.txt").write_text(text)
    return name


def normal(text: str) -> list[str]:
    """The tokens with identifiers numbered by their first appearance."""
    numbers: dict[str, str] = {}
    return [
        numbers.setdefault(token, f"v{len(numbers)}") if token[0].isalpha() or token[0] == "_" else token
        for token in WORD.findall(text)
    ]


def compare(before: Path, after: Path) -> int:
    """The number of texts that differ by more than names; each is named."""
    names = sorted({path.name for path in before.iterdir()} | {path.name for path in after.iterdir()})
    same = renamed = 0
    differ = []
    for name in names:
        left, right = (folder / name for folder in (before, after))
        if not left.exists() or not right.exists():
            differ.append(f"{name}: only in {before if left.exists() else after}")
        elif left.read_text() == right.read_text():
            same += 1
        elif normal(left.read_text()) == normal(right.read_text()):
            renamed += 1
        else:
            differ.append(name)
    print(f"{same} equal, {renamed} equal but for names, {len(differ)} different", *differ, sep="\n  ")
    return len(differ)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--compare", action="store_true", help="two folders that were written before")
    parser.add_argument("--dsl", default="cpp")
    parser.add_argument("--every", type=int, default=1, help="every so manieth task")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.compare:
        return min(compare(*options.folders), 1)
    (folder,) = options.folders
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [(suite, task.name) for suite in SUITES for task in suites.load(suite)][:: options.every]
    with get_context("spawn").Pool(options.jobs, maxtasksperchild=40) as pool:
        work = [(str(folder), suite, name, options.dsl) for suite, name in tasks]
        for number, _ in enumerate(pool.imap_unordered(write, work), 1):
            print(f"\r{number}/{len(tasks)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
