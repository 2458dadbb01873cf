// The three charts. Each takes the records that are shown and draws anew; they follow the table's filter.
const SIDE = { left: 46, right: 16, top: 10, bottom: 34 };

function canvas(width, height, label) {
  return make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

function legend(entries) {
  return make("div", { class: "legend" }, entries.map(([color, text, line]) =>
    make("span", {}, make("i", { class: line ? "line" : "", style: "background:" + color }), text)));
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const step of [1, 2, 5]) { const value = step * 10 ** power; if (value >= low * 0.999 && value <= high * 1.001) found.push(value); }
  return found.length > 9 ? found.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9) : found;
}

const plain = (value) => String(+value.toPrecision(3));

function drawCurve(records) {
  const host = document.getElementById("curve");
  const series = [["over eager", "var(--blue)", (record) => record.speed], ["over torch.compile", "var(--purple)", (record) => record.versus]]
    .map(([name, color, of]) => ({ name, color, values: records.filter((record) => record.outcome === "correct").map(of).filter((value) => value) }))
    .filter((one) => one.values.length);
  if (!series.length) return host.replaceChildren(make("p", { class: "empty" }, "Nothing was timed."));
  const width = 620, height = 270, low = 0.25;
  const high = Math.max(4, Math.min(64, Math.max(...series.flatMap((one) => one.values)) * 1.1));
  const x = (p) => SIDE.left + (Math.log(p / low) / Math.log(high / low)) * (width - SIDE.left - SIDE.right);
  const y = (share) => SIDE.top + (1 - share) * (height - SIDE.top - SIDE.bottom);
  const svg = canvas(width, height, "Share of tasks faster than p");
  for (const share of [0, 0.25, 0.5, 0.75, 1]) svg.append(
    make("line", { class: "grid", x1: SIDE.left, x2: width - SIDE.right, y1: y(share), y2: y(share) }),
    make("text", { x: SIDE.left - 8, y: y(share) + 4, "text-anchor": "end" }, percent(share)));
  for (const p of logTicks(low, high)) svg.append(make("text", { x: x(p), y: height - 14, "text-anchor": "middle" }, plain(p) + "×"));
  svg.append(make("line", { class: "one", x1: x(1), x2: x(1), y1: SIDE.top, y2: height - SIDE.bottom }));
  for (const one of series) {
    const share = (p) => one.values.filter((value) => value > p).length / records.length;
    const points = [];
    for (let step = 0; step <= 240; step++) { const p = low * (high / low) ** (step / 240); points.push(x(p) + "," + y(share(p))); }
    svg.append(make("polyline", { points: points.join(" "), fill: "none", stroke: one.color, "stroke-width": 2.2, "stroke-linejoin": "round" }));
    for (const p of [1, 1.5, 2]) svg.append(tell(
      make("circle", { class: "dot", cx: x(p), cy: y(share(p)), r: 4.5, style: "fill:" + one.color, tabindex: 0 }),
      `fast_${plain(p)} ${one.name}: ${percent(share(p))}\n${one.values.filter((value) => value > p).length} of ${records.length} tasks`));
  }
  host.replaceChildren(legend(series.map((one) => [one.color, `${one.name}: fast₁ ${percent(one.values.filter((value) => value > 1).length / records.length)}`, true])), svg);
}

function drawScatter(records) {
  const host = document.getElementById("scatter");
  const shown = records.filter((record) => record.timing && record.timing.roofline_ms > 0);
  if (!shown.length) return host.replaceChildren(make("p", { class: "empty" }, "Nothing was timed."));
  const width = 620, height = 270;
  const all = shown.flatMap((record) => [record.timing.roofline_ms, record.timing.kernel_ms]);
  const low = Math.min(...all) / 1.4, high = Math.max(...all) * 1.4;
  const scale = (value, from, to) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
  const x = (value) => scale(value, SIDE.left, width - SIDE.right), y = (value) => scale(value, height - SIDE.bottom, SIDE.top);
  const svg = canvas(width, height, "Kernel time against roofline time");
  for (const tick of logTicks(low, high)) svg.append(
    make("line", { class: "grid", x1: SIDE.left, x2: width - SIDE.right, y1: y(tick), y2: y(tick) }),
    make("text", { x: SIDE.left - 8, y: y(tick) + 4, "text-anchor": "end" }, plain(tick)),
    make("text", { x: x(tick), y: height - 14, "text-anchor": "middle" }, plain(tick)));
  svg.append(make("text", { x: width - SIDE.right, y: height, "text-anchor": "end" }, "roofline, ms"),
    make("text", { x: SIDE.left + 6, y: SIDE.top + 8 }, "kernel, ms"),
    make("line", { x1: x(low), y1: y(low), x2: x(high), y2: y(high), stroke: "var(--good)", "stroke-width": 1.5 }));
  const tenth = Math.min(high, low * 10);
  if (high > low * 10) svg.append(make("line", { class: "one", x1: x(low), y1: y(tenth), x2: x(high / 10), y2: y(high) }));
  for (const record of shown) svg.append(tell(make("circle", {
    class: "dot " + record.verb, cx: x(record.timing.roofline_ms), cy: y(record.timing.kernel_ms), r: 4.2, "fill-opacity": 0.85,
    tabindex: 0, onclick: () => reveal(record.key), onkeydown: (event) => { if (event.key === "Enter") reveal(record.key); },
  }), describe(record)));
  host.replaceChildren(legend([["var(--blue)", "faster than eager"], ["var(--even)", "no difference"], ["var(--bad)", "slower"],
    ["var(--good)", "the roofline", true], ["var(--faint)", "a tenth of it", true]]), svg);
}

function drawFamilies(records) {
  const host = document.getElementById("families");
  const rows = [...grouped(records, (record) => record.family)].map(([family, some]) => {
    const timed = some.filter((record) => record.speed);
    return { family, some, timed, geomean: mean(timed.map((record) => record.speed)), right: some.filter((record) => record.outcome === "correct").length };
  }).sort((a, b) => (b.geomean || 0) - (a.geomean || 0));
  if (!rows.some((row) => row.timed.length)) return host.replaceChildren(make("p", { class: "empty" }, "Nothing was timed."));
  const width = 1280, line = 27, height = rows.length * line + 40, left = 150, right = 150;
  const speeds = rows.flatMap((row) => row.timed.map((record) => record.speed));
  const low = Math.min(0.5, ...speeds) / 1.1, high = Math.max(2, ...speeds) * 1.1;
  const x = (value) => left + (Math.log(value / low) / Math.log(high / low)) * (width - left - right);
  const svg = canvas(width, height, "Geometric mean of speedups by family");
  for (const tick of logTicks(low, high)) svg.append(
    make("line", { class: "grid", x1: x(tick), x2: x(tick), y1: 4, y2: height - 30 }),
    make("text", { x: x(tick), y: height - 12, "text-anchor": "middle" }, plain(tick) + "×"));
  rows.forEach((row, place) => {
    const middle = 4 + place * line + line / 2;
    svg.append(make("text", { class: "strong", x: left - 12, y: middle + 4, "text-anchor": "end" }, row.family));
    if (row.geomean) svg.append(make("rect", { x: Math.min(x(1), x(row.geomean)), y: middle - 8, height: 16, rx: 3,
      width: Math.max(2, Math.abs(x(row.geomean) - x(1))), style: "fill:" + (row.geomean >= 1 ? "var(--blue)" : "var(--bad)"), "fill-opacity": 0.28 }));
    for (const record of row.timed) svg.append(tell(make("circle", {
      class: "dot " + record.verb, cx: x(record.speed), cy: middle, r: 4, "fill-opacity": 0.8, tabindex: 0,
      onclick: () => reveal(record.key), onkeydown: (event) => { if (event.key === "Enter") reveal(record.key); },
    }), describe(record)));
    svg.append(make("text", { class: "strong", x: width - right + 14, y: middle + 4 }, times(row.geomean)),
      make("text", { x: width - right + 66, y: middle + 4 }, `${row.right}/${row.some.length} correct`));
  });
  svg.append(make("line", { class: "one", x1: x(1), x2: x(1), y1: 0, y2: height - 30 }));
  host.replaceChildren(svg);
}
