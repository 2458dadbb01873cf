// The page: tiles, the table with its filters and order, and what a click opens. State is the address's part after #.
const state = { search: "", level: "", family: "", outcome: "", sort: "", down: true, open: "" };
const COLUMNS = [
  ["key", "Task", false, (record) => record.key], ["family", "Family", false, (record) => record.family],
  ["outcome", "Outcome", false, (record) => record.outcome], ["kernel", "Kernel ms", true, (record) => record.timing && record.timing.kernel_ms],
  ["eager", "Eager ms", true, (record) => record.timing && record.timing.eager_ms], ["speed", "Over eager", true, (record) => record.speed],
  ["versus", "Over compile", true, (record) => record.versus], ["roof", "Roofline", true, (record) => record.roof], ["seconds", "Took s", true, (record) => record.seconds],
];
const byId = (id) => document.getElementById(id);

function matching() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  return report.records.filter((record) =>
    (!state.level || record.where === state.level) && (!state.family || record.family === state.family) &&
    (!state.outcome || (["faster", "even", "slower"].includes(state.outcome) ? record.verb === state.outcome : record.outcome === state.outcome)) &&
    words.every((word) => (record.key + " " + record.family + " " + record.reason).toLowerCase().includes(word)));
}

function ordered(records) {
  const column = COLUMNS.find(([name]) => name === state.sort);
  if (!column) return records;
  const of = column[3], sign = state.down ? -1 : 1;
  return [...records].sort((a, b) => {
    const left = of(a), right = of(b);
    if (left == null || right == null) return (left == null) - (right == null);  // what has no value comes last, either way
    return sign * (typeof left === "string" ? left.localeCompare(right, "en", { numeric: true }) : left - right);
  });
}

function badge(record) {
  const kind = record.outcome === "correct" ? "correct" : SKIPPED.has(record.outcome) ? "skipped" : "failed";
  const more = [record.track === "hybrid" ? "hybrid" : "", record.scaled.length ? "scaled" : ""].filter(Boolean);
  return [make("span", { class: "badge " + kind }, record.outcome.replaceAll("_", " ")), ...more.map((word) => make("span", { class: "badge plain", style: "margin-left:6px" }, word))];
}

// The interval on a logarithmic scale from 1/4 to 4, with a mark at 1.
function range(timing) {
  const width = 110, x = (value) => 3 + (Math.min(1, Math.max(-1, Math.log(value) / Math.log(4))) + 1) / 2 * (width - 6);
  const color = timing.speedup_low > 1 ? "var(--blue)" : timing.speedup_high < 1 ? "var(--bad)" : "var(--even)";
  return make("svg", { class: "range", viewBox: `0 0 ${width} 14`, "aria-hidden": "true" },
    make("line", { class: "axis", x1: 3, x2: width - 3, y1: 7, y2: 7 }), make("line", { class: "axis", x1: x(1), x2: x(1), y1: 1, y2: 13, style: "stroke:var(--faint)" }),
    make("line", { x1: x(timing.speedup_low), x2: x(timing.speedup_high), y1: 7, y2: 7, style: `stroke:${color};stroke-width:3;stroke-linecap:round` }),
    make("circle", { cx: x(timing.speedup), cy: 7, r: 3.6, style: "fill:" + color }));
}

function row(record) {
  const timing = record.timing;
  const open = () => { state.open = state.open === record.key ? "" : record.key; remember(); toggle(record.key); };
  const name = record.key.split("/"), last = name.pop();
  return make("tr", { class: "task", tabindex: 0, "data-key": record.key, "aria-expanded": "false", onclick: open,
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } } },
    make("td", {}, make("span", { class: "path" }, name.length ? name.join("/") + "/" : ""), last), make("td", {}, record.family), make("td", {}, badge(record)),
    !timing ? make("td", { class: "reason", colspan: 5 }, make("div", {}, record.reason)) : [
      make("td", { class: "number" }, milli(timing.kernel_ms)), make("td", { class: "number" }, milli(timing.eager_ms)),
      make("td", { class: "number" }, times(record.speed), range(timing)), make("td", { class: "number" }, times(record.versus)),
      make("td", { class: "number" }, percent(record.roof))],
    make("td", { class: "number" }, record.seconds.toFixed(1)));
}

async function toggle(key) {
  const line = document.querySelector(`tr.task[data-key="${CSS.escape(key)}"]`);
  document.querySelectorAll("tr.detail").forEach((node) => node.remove());
  document.querySelectorAll("tr.task.open").forEach((node) => { node.classList.remove("open"); node.setAttribute("aria-expanded", "false"); });
  if (!line || state.open !== key) return;
  line.classList.add("open");
  line.setAttribute("aria-expanded", "true");
  const record = report.records.find((one) => one.key === key);
  const sheet = await detail(record);
  if (state.open === key && !line.nextElementSibling?.classList.contains("detail")) line.after(make("tr", { class: "detail" }, make("td", { colspan: COLUMNS.length }, sheet)));
}

// From a chart: show the task in the table, whatever the filter says.
function reveal(key) {
  if (!matching().some((record) => record.key === key)) Object.assign(state, { search: "", level: "", family: "", outcome: "" });
  state.open = key;
  draw();
  document.querySelector(`tr.task[data-key="${CSS.escape(key)}"]`)?.scrollIntoView({ block: "center", behavior: "smooth" });
}

function draw() {
  const records = matching();
  byId("rows").replaceChildren(...ordered(records).map(row));
  byId("none").hidden = records.length > 0;
  byId("count").textContent = records.length === report.records.length ? String(records.length) : `${records.length} of ${report.records.length}`;
  byId("clear").hidden = !(state.search || state.level || state.family || state.outcome);
  for (const name of ["search", "level", "family", "outcome"]) if (byId(name).value !== state[name]) byId(name).value = state[name];
  byId("head").replaceChildren(...COLUMNS.map(([name, title, number]) => make("th", { class: number ? "number" : "", "aria-sort": state.sort === name ? (state.down ? "descending" : "ascending") : "none" },
    make("button", { type: "button", "data-sort": name, onclick: () => { state.down = state.sort === name ? !state.down : number; state.sort = name; draw(); } }, title))));
  drawFailures();
  drawTiles(records);
  drawCurve(records);
  drawScatter(records);
  drawFamilies(records);
  remember();
  if (state.open) toggle(state.open);
}

// Failures by reason, each a button that shows them.
function drawFailures() {
  byId("failures").replaceChildren(...report.failures.map((failure) => make("button", {
    type: "button", class: "chip", "aria-pressed": String(state.outcome === failure.outcome), "data-outcome": failure.outcome,
    onclick: () => { state.outcome = state.outcome === failure.outcome ? "" : failure.outcome; draw(); },
  }, failure.outcome.replaceAll("_", " "), make("b", {}, " " + failure.count))));
}

function tile(what, value, more, share) {
  return make("div", { class: "tile" }, make("div", { class: "what" }, what), make("div", { class: "value" }, value),
    share == null ? null : make("div", { class: "meter" }, make("i", { style: `width:${100 * share}%` })), make("div", { class: "more" }, more));
}

// Over all tasks the report's own figures with their intervals; over a selection what can be computed here.
function drawTiles(records) {
  const whole = records.length === report.records.length, summary = report.summary;
  const right = records.filter((record) => record.outcome === "correct"), tiles = [];
  tiles.push(tile("Correct", `${right.length} / ${records.length}`, percent(records.length ? right.length / records.length : 0), records.length ? right.length / records.length : 0));
  for (const [title, of, figures] of [["Over eager", (record) => record.speed, summary.over_eager], ["Over compile", (record) => record.versus, summary.over_compile]]) {
    const values = right.map(of).filter(Boolean);
    if (!values.length) continue;
    const padded = mean([...values, ...Array(records.length - values.length).fill(1)]);
    const exact = whole && figures && figures.geomean_correct;
    tiles.push(tile(title + ", geomean", times(mean(values)), (exact ? `[${times(exact.low)}, ${times(exact.high)}] over ${exact.count}; ` : `over ${values.length}; `) + `failures as 1×: ${times(padded)}`));
  }
  const speeds = right.map((record) => record.speed).filter(Boolean);
  if (speeds.length) {
    const fast = speeds.filter((value) => value > 1).length / records.length;
    tiles.push(tile("Faster than eager", percent(fast), `beyond doubt: ${right.filter((record) => record.verb === "faster").length} faster, ${right.filter((record) => record.verb === "slower").length} slower`, fast));
  }
  const roofs = right.map((record) => record.roof).filter(Boolean).sort((a, b) => a - b);
  if (roofs.length) { const middle = roofs[roofs.length >> 1]; tiles.push(tile("Of the roofline, median", percent(middle), `best ${percent(roofs.at(-1))}, worst ${percent(roofs[0])}`, Math.min(1, middle))); }
  const took = records.map((record) => record.seconds).sort((a, b) => a - b), cost = records.reduce((sum, record) => sum + record.cost_usd, 0);
  if (took.length) tiles.push(tile("Time to a kernel, median", took[took.length >> 1].toFixed(1) + " s", `${(took.reduce((a, b) => a + b, 0) / 60).toFixed(0)} min in all` + (cost ? `, $${cost.toFixed(2)}` : ", no model")));
  byId("tiles").replaceChildren(...tiles);
}

function remember() {
  const kept = new URLSearchParams(Object.entries(state).filter(([name, value]) => value && name !== "down").concat(state.sort ? [["down", state.down ? 1 : 0]] : []));
  history.replaceState(null, "", "#" + kept);
}

function recall() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) if (name in state) state[name] = name === "down" ? value === "1" : value;
}

function choices(id, title, words) {
  byId(id).replaceChildren(make("option", { value: "" }, title), ...words.map(([word, text]) => make("option", { value: word }, text)));
  byId(id).addEventListener("change", () => { state[id] = byId(id).value; draw(); });
}

const counted = (by) => [...grouped(report.records, by)].map(([word, some]) => [word, `${word.replaceAll("_", " ")} (${some.length})`]);

function themes() {
  const names = ["", "light", "dark"], titles = ["◐ As the system", "☀ Light", "☾ Dark"];
  let at = 0;
  try { at = Math.max(0, names.indexOf(localStorage.getItem("theme") || "")); } catch { at = 0; }
  const apply = () => {
    if (names[at]) document.documentElement.dataset.theme = names[at]; else delete document.documentElement.dataset.theme;
    byId("theme").textContent = titles[at];
    try { localStorage.setItem("theme", names[at]); } catch { /* a page from a file may keep nothing */ }
  };
  byId("theme").addEventListener("click", () => { at = (at + 1) % 3; apply(); });
  apply();
}

function start() {
  const options = report.options, machine = report.machines.at(-1);
  byId("title").textContent = report.title;
  byId("conditions").textContent = `${report.created} · track ${options.track} · effort ${options.effort} · against ${options.contenders.join(", ")} · ${machine.cpu}, ${machine.threads} threads · torch ${machine.torch} · ${machine.compiler} · kernelwright ${machine.kernelwright} ${machine.commit}`;
  const notes = [];
  if (options.scale < 1) notes.push(`Sizes were scaled by ${options.scale}: speeds are not comparable with those at full size.`);
  if (report.records.length < report.planned) notes.push(`Unfinished: ${report.records.length} of ${report.planned} tasks.`);
  if (options.kernels) notes.push(`The kernels were not made here; they come from ${options.kernels}.`);
  byId("notes").replaceChildren(...notes.map((text) => make("p", { class: "note" }, text)));
  document.querySelector(".charts").hidden = !report.records.some((record) => record.timing);  // off the device nothing is timed
  choices("level", "All levels", counted((record) => record.where));
  choices("family", "All families", counted((record) => record.family));
  const verbs = report.records.some((record) => record.verb) ? [["faster", "faster beyond doubt"], ["even", "no difference"], ["slower", "slower beyond doubt"]] : [];
  choices("outcome", "All outcomes", [...counted((record) => record.outcome), ...verbs]);
  byId("search").addEventListener("input", () => { state.search = byId("search").value; draw(); });
  byId("clear").addEventListener("click", () => { Object.assign(state, { search: "", level: "", family: "", outcome: "" }); draw(); });
  byId("foot").textContent = `Speedups are medians of paired rounds with 95 % intervals; means over tasks are geometric. The denominator of every share is all tasks. ${machine.system}, Python ${machine.python}, ${machine.memory_gb} GB.`;
  themes();
  recall();
  draw();
  if (state.open) reveal(state.open);
}

start();
