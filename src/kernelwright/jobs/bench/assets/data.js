// The report as the page works with it: records with the few figures that charts and table share.
const report = JSON.parse(document.getElementById("report").textContent);
const sealed = JSON.parse(document.getElementById("details").textContent);
const SKIPPED = new Set(["unusable_task", "too_large", "too_slow", "no_kernel"]);

for (const record of report.records) {
  const timing = record.timing;
  record.where = record.level ? record.suite + "/" + record.level : record.suite;
  record.speed = timing ? timing.speedup : null;
  record.versus = timing ? timing.speedup_vs_compile : null;
  record.roof = timing ? timing.roofline_fraction : null;
  record.verb = !timing ? null : timing.speedup_low > 1 ? "faster" : timing.speedup_high < 1 ? "slower" : "even";
}

const times = (value) => value == null ? "–" : (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)) + "×";
const percent = (value) => value == null ? "–" : (100 * value).toFixed(value > 0.99 && value < 1 || value > 0 && value < 0.01 ? 1 : 0) + " %";
const milli = (value) => value == null ? "–" : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 1 ? value.toFixed(2) : value.toFixed(3);
const mean = (values) => values.length ? Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length) : null;
const grouped = (items, by) => {
  const found = new Map();
  for (const item of items) found.set(by(item), [...(found.get(by(item)) || []), item]);
  return found;
};

// Elements by short calls; text is only ever set as text, because reasons quote other people's code.
function make(tag, attributes, ...children) {
  const svg = ["svg", "g", "path", "line", "circle", "rect", "text", "polyline"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// The text of a task's kernel, sketch and so on travels compressed; it is opened when somebody looks.
async function unseal(key) {
  if (!sealed[key]) return {};
  const bytes = Uint8Array.from(atob(sealed[key]), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const tip = document.getElementById("tip");
function tell(node, text) {
  const show = (event) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = node.getBoundingClientRect();
    const x = event.clientX || box.x + box.width / 2, y = event.clientY || box.y;
    tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = (y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18) + "px";
  };
  const hide = () => { tip.hidden = true; };
  for (const [name, action] of [["mouseenter", show], ["mousemove", show], ["mouseleave", hide], ["focus", show], ["blur", hide]]) node.addEventListener(name, action);
  return node;
}

function describe(record) {
  const timing = record.timing;
  const lines = [record.key];
  lines.push(times(timing.speedup) + " eager  [" + times(timing.speedup_low) + ", " + times(timing.speedup_high) + "]");
  if (record.versus) lines.push(times(record.versus) + " torch.compile");
  lines.push("kernel " + milli(timing.kernel_ms) + " ms, eager " + milli(timing.eager_ms) + " ms");
  if (record.roof) lines.push("roofline " + milli(timing.roofline_ms) + " ms: reaches " + percent(record.roof));
  return lines.join("\n");
}
