"""A profile as one HTML page that needs nothing else: the roofline as a drawing, a table of what is known, the hottest lines."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

from kernelwright.cli.profile.told import Told, milliseconds, share, short
from kernelwright.core.launch_figures import LaunchFigures

_WIDTH, _HEIGHT, _MARGIN = 640, 360, 48
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2330; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #e3e6ec; vertical-align: top }
.kind { color: #667; white-space: nowrap } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.bar { background: #3465c4; height: .7rem; display: inline-block } code { font-size: .85rem; white-space: pre-wrap }
svg text { font: 12px system-ui, sans-serif; fill: #445 } .wrong { color: #b00020 }
@media (prefers-color-scheme: dark) {
  body { background: #14171d; color: #dde } td, th { border-color: #333a46 } svg text { fill: #aab } .kind { color: #99a }
}
"""


def page(told: Told) -> str:
    """The page's text."""
    title = f"{Path(told.kernel).name} on {told.target.title or told.target.name}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        "<p>No device was at hand: figures are counted while the compiled code ran on a CPU, read off the compiled code, or "
        "predicted. Nothing is measured.</p>",
    ]
    if told.wrong:
        parts.append(f'<p class="wrong">Wrong on the task\'s inputs: {escape(told.wrong)}</p>')
    if told.predicted_ms is not None:
        reached = share(told)
        light = f"; speed of light {milliseconds(told.speed_of_light_ms)}" if told.speed_of_light_ms else ""
        light += f", of which that is {reached:.0%}" if reached else ""
        parts.append(f"<p><b>Predicted {milliseconds(told.predicted_ms)} ± {told.error or 0:.0%}</b> a call{light}.</p>")
    if told.advice:
        parts += ["<h2>What to change</h2><ol>", *(f"<li>{escape(text)}</li>" for text in told.advice), "</ol>"]
    if told.launches:
        parts += ["<h2>Roofline</h2>", _roofline(told)]
    parts += [_launch(each) for each in told.launches]
    parts += [f"<p class=kind>{escape(note)}</p>" for note in told.notes]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return head + "\n".join(parts) + "</html>\n"


def _launch(each: LaunchFigures) -> str:
    c, m, p = each.counted, each.compiled, each.predicted
    rows = [
        ("counted", "instructions of warps", ", ".join(f"{short(n)} {kind}" for kind, n in list(c.instructions.items())[:10])),
        ("counted", "lanes active", f"{c.lanes_active:.1f} of 32"),
        ("counted", "blocks", f"{c.sampled} stand for {math.prod(each.grid)}; they differ by {c.spread:.0%}"),
    ]
    if c.sectors_per_request is not None:
        asked, needed = (
            f"{short(c.global_requests)} requests of {c.sectors_per_request} sectors",
            f"{c.sector_efficiency or 0:.0%}",
        )
        rows.append(
            (
                "counted",
                "global memory",
                f"{asked}, {needed} of them needed; the first level holds {c.first_level_hits or 0:.0%}",
            )
        )
    if c.bank_passes_per_request is not None:
        asked, needed = (
            f"{short(c.shared_requests)} requests of {c.bank_passes_per_request} passes",
            f"{c.bank_efficiency or 0:.0%}",
        )
        rows.append(
            ("counted", "shared memory", f"{asked} over the banks, {needed} of them needed; {short(c.barriers)} barriers")
        )
    rows += [
        ("compiled", "registers", f"{m.registers}, {m.spilled_bytes} bytes spilled"),
        ("compiled", "shared memory", f"{m.shared_memory} bytes"),
        ("compiled", "occupancy", f"{m.occupancy:.0%}, limited by {m.limiter}; {m.blocks_resident} blocks resident"),
        (
            "predicted",
            "time",
            f"{milliseconds(p.ms)} ± {p.error:.0%}, {each.times} times a call; bound by {p.bound}; {p.waves:.2f} waves",
        ),
        ("predicted", "each resource alone", ", ".join(f"{name} {milliseconds(ms)}" for name, ms in p.parts_ms.items())),
        ("predicted", "traffic", f"second level {short(p.second_level_bytes)}B, memory {short(p.memory_bytes)}B"),
    ]
    table = "".join(f'<tr><td class="kind">{a}</td><td>{b}</td><td>{escape(text)}</td></tr>' for a, b, text in rows)
    extents = f"grid {'×'.join(map(str, each.grid))}, block {'×'.join(map(str, each.block))}"
    return f"<h2>{escape(each.name)}</h2><p>{extents}</p><table>{table}</table>{_lines(each)}"


def _lines(each: LaunchFigures) -> str:
    rows = []
    for line in each.lines:
        place = f"{Path(line.file).name}:{line.line}" if line.file else f"PTX {line.line}"
        had = f"{line.sectors_per_request:.1f} / {line.least_sectors or 0:.1f}" if line.sectors_per_request else ""
        banks = f"{line.bank_passes_per_request:.1f} / {line.least_passes or 0:.1f}" if line.bank_passes_per_request else ""
        rows.append(
            f'<tr><td class="number">{line.share:.0%} <span class="bar" style="width:{60 * line.share:.0f}px"></span></td>'
            f'<td class="number">{short(line.instructions)}</td><td class="number">{had}</td><td class="number">{banks}</td>'
            f"<td>{escape(place)}</td><td><code>{escape(line.source)}</code></td></tr>"
        )
    titles = ("time (predicted)", "instructions", "sectors, had / needed", "passes, had / needed", "line", "")
    head = f"<tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>"
    return f"<h3>Hottest lines</h3><table>{head}{''.join(rows)}</table>" if rows else ""


def _roofline(told: Told) -> str:
    """Operations a byte against operations a second, both in powers of ten."""
    roof = told.roofline()
    peaks = sorted(set(roof["peak_flops"].values()))
    points = [
        (p["name"], p["flops_per_byte"], p["flops_per_second"])
        for p in roof["launches"]
        if p["flops_per_byte"] and p["flops_per_second"]
    ]
    xs = [x for _, x, _ in points] + [peak / roof["bandwidth"] for peak in peaks]
    low, high = math.floor(math.log10(min(xs)) - 0.5), math.ceil(math.log10(max(xs)) + 0.5)
    top = math.ceil(math.log10(max(peaks)))
    bottom = min([top - 5, *(math.floor(math.log10(y)) for *_, y in points)])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low) / (high - low) * (_WIDTH - 2 * _MARGIN) + _MARGIN
        return across, _HEIGHT - _MARGIN - (math.log10(y) - bottom) / (top - bottom) * (_HEIGHT - 2 * _MARGIN)

    drawn = []
    for peak in peaks:
        knee = peak / roof["bandwidth"]
        path = [at(10.0**low, 10.0**low * roof["bandwidth"]), at(knee, peak), at(10.0**high, peak)]
        path = [(x, min(y, _HEIGHT - _MARGIN)) for x, y in path]
        drawn.append(
            f'<polyline fill="none" stroke="#3465c4" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in path)}"/>'
        )
        drawn.append(
            f'<text x="{_WIDTH - _MARGIN}" y="{at(1.0, peak)[1] - 5:.1f}" text-anchor="end">{short(peak)}FLOP/s</text>'
        )
    for name, x, y in points:
        px, py = at(x, y)
        drawn.append(
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" fill="#d9622b">'
            f"<title>{escape(name)}: {x:.3g} FLOP/byte, {short(y)}FLOP/s</title></circle>"
        )
        drawn.append(f'<text x="{px + 8:.1f}" y="{py + 4:.1f}">{escape(name[:30])}</text>')
    for power in range(low, high + 1):
        drawn.append(
            f'<text x="{at(10.0**power, 10.0**bottom)[0]:.1f}" y="{_HEIGHT - _MARGIN + 18}" text-anchor="middle">{10.0**power:g}</text>'
        )
    drawn.append(
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">operations (counted) a byte of memory (predicted)</text>'
    )
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="roofline">{"".join(drawn)}</svg>'
