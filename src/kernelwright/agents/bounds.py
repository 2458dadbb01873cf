"""What bounds a correct C++ kernel, in a few lines: which loops GCC did not vectorise and why, and what llvm-mca says of the
one that seems hottest; a tool that failed is said to have failed.

In: a kernel file's text. Out: text, empty where there is nothing to say (another language, no compiler). The source is compiled to
assembly and never run: what runs, runs in the judge. Of the compiler's output only its remarks about lines of this source are used.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from kernelwright.agents.distil import native_source

COMPILE_SECONDS, MODEL_SECONDS = 60.0, 20.0
REMARK = re.compile(r"^kernel\.cpp:(?P<line>\d+):\d+: (?P<what>missed|optimized):\s+(?P<text>.*)$")
VAGUE = (
    "couldn't vectorize loop",
    "statement clobbers memory",
    "not inlinable",
    "will not be",
    "loop nest containing two or more",
)
"""Remarks that follow from others, or that say nothing about an innermost loop."""
LOOP = re.compile(r"\b(for|while)\b\s*\(")
LOOPS_TOLD = 5
FLAGS = ("-O3", "-march=native", "-fopenmp", "-fPIC", "-std=c++20", "-fno-math-errno", "-fno-trapping-math", "-w")
BLOCK = re.compile(r"^(\.L\w+):$")
JUMP = re.compile(r"^\s+j\w+\s+(\.L\w+)")
ARITHMETIC = re.compile(r"^\s+v?(f(n?m)(add|sub)|add|sub|mul|div|max|min|sqrt)\w*(ps|pd|ss|sd)\b")


def explain(kernel: str) -> str:
    """The remarks about a kernel file, or an empty text."""
    source = native_source(kernel)
    compiler = shutil.which("g++")
    if 'extern "C"' not in source or "__global__" in source or compiler is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "kernel.cpp").write_text(source)
        command = [compiler, *FLAGS, "-fopt-info-vec-optimized-missed=remarks.txt", "-S", "kernel.cpp", "-o", "kernel.s"]
        if not _ran(command, place, COMPILE_SECONDS):
            return "g++ did not compile the kernel's native source by itself: nothing is known of its loops"
        remarks = (place / "remarks.txt").read_text(errors="replace") if (place / "remarks.txt").exists() else ""
        lines = vectorisation(remarks, source)
        hottest = hot_loop((place / "kernel.s").read_text(errors="replace"))
        return "\n".join([*lines, *_port_model(hottest, place)])


def vectorisation(remarks: str, source: str) -> list[str]:
    """One line for each loop that stayed scalar, with its source and the compiler's first reason."""
    done, missed = set(), dict[int, str]()
    for remark in remarks.splitlines():
        found = REMARK.match(remark)
        if found is None:
            continue
        line, text = int(found["line"]), found["text"].strip()
        if found["what"] == "optimized" and "loop vectorized" in text:
            done.add(line)
        elif found["what"] == "missed" and text.startswith("not vectorized") and not any(word in text for word in VAGUE):
            missed.setdefault(line, text.removeprefix("not vectorized:").strip())
    lines = source.splitlines()
    told = []
    for number, why in sorted(missed.items()):
        if number not in done and 0 < number <= len(lines) and LOOP.search(lines[number - 1]):
            told.append(f"line {number} of the source is not vectorised: {why[:120]}\n    {lines[number - 1].strip()[:120]}")
    counted = f"GCC vectorised {len(done)} loops" + (f"; {len(told)} remarks about others:" if told else "")
    return [counted, *told[:LOOPS_TOLD]]


def hot_loop(assembly: str) -> str:
    """The innermost loop that is nested deepest, and among those the one with the most floating-point arithmetic: a guess at the hottest. A
    loop that packs data once may have more arithmetic than the one that runs a thousand times as often, but is nested less deep."""
    lines = assembly.splitlines()
    spans = _loops(lines)
    best, most = "", (0, 0)
    for start, end in spans:
        body = [line for line in lines[start + 1 : end + 1] if not line.strip().startswith((".", "#"))]
        if any(BLOCK.match(line) for line in body):
            continue  # not an innermost one
        work = sum(ARITHMETIC.match(line) is not None for line in body)
        depth = sum(first <= start and end <= last for first, last in spans)
        if work and (depth, work) > most:
            best, most = "\n".join([lines[start], *body]) + "\n", (depth, work)
    return best


def _loops(lines: list[str]) -> list[tuple[int, int]]:
    """From a label to the last jump back to it: the first and the last line of every loop."""
    labels, found = dict[str, int](), dict[int, int]()
    for at, line in enumerate(lines):
        if label := BLOCK.match(line):
            labels[label[1]] = at
        elif (jump := JUMP.match(line)) and jump[1] in labels:
            found[labels[jump[1]]] = at
    return list(found.items())


def _port_model(loop: str, folder: Path) -> list[str]:
    """llvm-mca's account of one loop: cycles an iteration, and which resource is short; where it has none, why."""
    tools = [found for n in range(30, 13, -1) if (found := shutil.which(f"llvm-mca-{n}"))]
    tools += [found] if (found := shutil.which("llvm-mca")) else []
    if not loop:
        return []
    if not tools:
        return ["llvm-mca is not installed: nothing is known of the ports"]
    (folder / "loop.s").write_text(loop)
    # A release that is older than the processor does not know its instructions: then another processor that has them stands in.
    wide = "zmm" in loop or "%k" in loop
    said = ""
    for cpu in ("native", *(("icelake-server",) if wide else ())):
        command = [tools[0], f"-mcpu={cpu}", "-iterations=100", "-bottleneck-analysis", "loop.s"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=MODEL_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            said = type(error).__name__
            continue
        if told := summary(done.stdout, loop):
            return (
                told
                if cpu == "native"
                else [f"{told[0]} (as if this were {cpu}: llvm-mca does not know this processor)", *told[1:]]
            )
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200]) or "no report"
    return [f"llvm-mca failed on the loop that seems hottest: {said[:200]}"]


def summary(report: str, loop: str) -> list[str]:
    """The few figures of an llvm-mca report that a person would look at."""
    cycles = re.search(r"^Total Cycles:\s+(\d+)", report, re.MULTILINE)
    best = re.search(r"^Block RThroughput:\s+([\d.]+)", report, re.MULTILINE)
    if cycles is None or best is None:
        return []
    told = [
        f"the loop that seems hottest (by its nesting; {loop.count(chr(10)) - 1} instructions) takes "
        f"{int(cycles[1]) / 100:.1f} cycles an iteration by llvm-mca; "
        f"its instructions alone would allow {float(best[1]):.1f}"
    ]
    pressure = re.findall(
        r"^\s*- ?(Register|Memory|Resource) (?:Dependencies|Pressure)?.*?\[ ([\d.]+)% \]", report, re.MULTILINE
    )
    data = re.search(r"Data Dependencies:\s*\[ ([\d.]+)% \]", report)
    if data is not None and float(data[1]) > 20:
        told.append(f"{data[1]} % of its cycles wait for an earlier result: more independent accumulators would help")
    elif pressure:
        told.append(f"it is held up by {pressure[0][0].lower()} pressure in {pressure[0][1]} % of its cycles")
    return told


def _ran(command: list[str], folder: Path, seconds: float) -> bool:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(command, cwd=folder, capture_output=True, timeout=seconds, check=False).returncode == 0
    return False
