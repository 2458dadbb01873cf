// What opens below a row: verdict, sketch, kernel, task and lineage, each on a tab.
const WORDS = "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield None True False " +
  "auto bool char const constexpr double float int int32_t int64_t inline long namespace restrict __restrict__ size_t static struct template typename unsigned using void parallel range";
const KEYWORDS = new Set(WORDS.split(" "));
const TOKEN = /("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(#[^\n]*|\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(\b\d[\w.]*)|([A-Za-z_]\w*)(?=\s*(\()?)/g;

// Kernels are Python around C++ in a long string: the inside of such a string is highlighted as code, not as one colour.
function highlight(text) {
  const host = make("pre", { tabindex: 0 });
  paint(host, text, 0);
  return host;
}

function paint(host, text, depth) {
  let last = 0;
  const add = (kind, part) => host.append(kind ? make("span", { class: kind }, part) : part);
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > last) add("", text.slice(last, match.index));
    const [whole, string, comment, number, word, call] = match;
    if (string && depth === 0 && string.length > 400) {
      add("s", string.slice(0, 3)); paint(host, string.slice(3, -3), 1); add("s", string.slice(-3));
    } else if (comment && comment[0] === "#" && depth > 0) add("f", whole);  // a line for the preprocessor
    else add(string ? "s" : comment ? "c" : number ? "n" : KEYWORDS.has(word) ? "k" : call ? "f" : "", whole);
    last = match.index + whole.length;
  }
  add("", text.slice(last));
}

function pairs(rows) {
  return make("dl", {}, rows.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
}

function verdictTab(record, verdict) {
  const timing = record.timing;
  const trials = verdict && verdict.trials;
  return pairs([
    ["outcome", record.outcome], ["reason", record.reason], ["family", record.family], ["track", record.track], ["language", record.dsl],
    ["executed", record.execution], ["library calls", record.library_calls.join(", ")],
    ["kernel", timing && milli(timing.kernel_ms) + " ms"],
    ["over eager", timing && `${times(timing.speedup)}  [${times(timing.speedup_low)}, ${times(timing.speedup_high)}], eager ${milli(timing.eager_ms)} ms`],
    ["over torch.compile", timing && timing.speedup_vs_compile && `${times(timing.speedup_vs_compile)}  [${times(timing.speedup_vs_compile_low)}, ${times(timing.speedup_vs_compile_high)}], ${milli(timing.compile_ms)} ms`],
    ...((timing && timing.rivals) || []).map((rival) => ["over " + rival.name, `${times(rival.speedup)}  [${times(rival.speedup_low)}, ${times(rival.speedup_high)}], ${milli(rival.ms)} ms`]),
    ...Object.entries((verdict && verdict.compiled_for) || {}).map(([target, figures]) => ["compiled for " + target, Object.entries(figures)
      .filter(([, value]) => value !== null && typeof value !== "object").map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? +value.toPrecision(3) : value}`).join(", ")]),
    ["roofline", record.roof && `${percent(record.roof)} of ${milli(timing.roofline_ms)} ms`],
    ["measured", timing && `${timing.rounds} rounds, ${timing.threads} threads, ${timing.cache} cache, eager against itself ±${(100 * timing.noise).toFixed(1)} %`],
    ["trials", trials && `${trials.seeds} seeds, distributions ${trials.distributions.join(", ")}, ${trials.shapes} shapes, ${trials.noncontiguous} not contiguous; reference ${trials.reference}`],
    ["mismatch", verdict && verdict.mismatch && `${verdict.mismatch.output}: ${verdict.mismatch.wrong} of ${verdict.mismatch.total} wrong, ${verdict.mismatch.region}`],
    ["build", verdict && verdict.build && verdict.build.message], ["sandbox", verdict && verdict.sandbox],
    ["scaled", record.scaled.join(", ")], ["the task", record.task_flags.join("; ")], ["warnings", record.warnings.join("; ")],
    ["reference", record.reference_ms && milli(record.reference_ms) + " ms at first look"], ["drafts judged", record.tried || null],
    ["took", record.seconds.toFixed(1) + " s" + (record.cost_usd ? `, $${record.cost_usd.toFixed(3)}` : "")], ["finished", record.finished], ["file", record.path],
  ]);
}

// A fact of a step in words; hashes are shortened, what is empty is left out.
function fact([name, value]) {
  if (value === null || value === "" || (typeof value === "object" && !Object.keys(value).length)) return null;
  const brief = (item) => typeof item === "string" && /^[0-9a-f]{16,}$/.test(item) ? item.slice(0, 8) : typeof item === "number" ? String(+item.toPrecision(4)) : String(item);
  if (Array.isArray(value)) return name + ": " + value.map(brief).join("; ");
  return name + ": " + (typeof value === "object" ? Object.entries(value).map(([key, item]) => key + " " + brief(item)).join(", ") : brief(value));
}

function lineageTab(record) {
  return make("ol", { class: "steps" }, record.lineage.map((step) => {
    const { reason, ...rest } = step.facts;
    return make("li", {}, make("b", {}, step.step), make("span", { class: "at" }, `after ${step.seconds.toFixed(1)} s`), reason ? make("div", {}, String(reason)) : null,
      make("div", { class: "facts" }, Object.entries(rest).map(fact).filter(Boolean).join("  ·  ")));
  }));
}

async function detail(record) {
  const texts = await unseal(record.key);
  let verdict = null;
  try { verdict = texts.verdict ? JSON.parse(texts.verdict) : null; } catch { verdict = null; }
  const tabs = [["Verdict", () => verdictTab(record, verdict), ""]];
  for (const [name, field] of [["Sketch", "sketch"], ["Kernel", "kernel"], ["Task", "task"]])
    if (texts[field]) tabs.push([name, () => highlight(texts[field]), texts[field]]);
  if (record.lineage.length) tabs.push(["Lineage", () => lineageTab(record), ""]);
  const body = make("div", { role: "tabpanel" }), bar = make("div", { class: "tabs", role: "tablist" });
  const copy = make("button", { type: "button", class: "copy", hidden: true }, "Copy");
  const choose = (place) => {
    [...bar.querySelectorAll("[role=tab]")].forEach((tab, index) => tab.setAttribute("aria-selected", index === place));
    body.replaceChildren(tabs[place][1]());
    copy.hidden = !tabs[place][2];
    copy.onclick = () => navigator.clipboard && navigator.clipboard.writeText(tabs[place][2]).then(() => { copy.textContent = "Copied"; }, () => { copy.textContent = "Not allowed"; });
    copy.textContent = "Copy";
  };
  tabs.forEach(([name], place) => bar.append(make("button", { type: "button", role: "tab", onclick: () => choose(place) }, name)));
  bar.append(copy);
  choose(0);
  return make("div", { class: "sheet" }, bar, body);
}
