// A report as its view works with it: records with the few figures that charts and table share, and the state that its address keeps.
import type { Facts, Timing } from "../api";
import { mean, milli, percent, times } from "../format";

export interface Figure { value: number; low: number; high: number; count: number }
export interface Speed { geomean_correct: Figure | null; surely_faster: number; slower: number }
export interface Summary { tasks: number; correct: number; over_eager: Speed | null; over_compile: Speed | null }
export interface Rec {
  key: string; suite: string; level: string; name: string; family: string; path: string; dsl: string; track: string; outcome: string; reason: string; execution: string | null;
  reference_ms: number | null; scaled: string[]; timing: Timing | null; library_calls: string[]; task_flags: string[]; warnings: string[];
  lineage: { step: string; seconds: number; facts: Facts }[]; tried: number; seconds: number; cost_usd: number; finished: string;
}
export interface Report {
  title: string; created: string; planned: number; summary: Summary; records: Rec[]; failures: { outcome: string; count: number; tasks: string[] }[];
  options: { dsl: string; track: string; effort: string; contenders: string[]; scale: number; kernels: string | null };
  machines: { cpu: string; threads: number; torch: string; compiler: string; kernelwright: string; commit: string; system: string; python: string; memory_gb: number }[];
}
export type Texts = Partial<Record<"kernel" | "sketch" | "task" | "verdict", string>>;

export interface View { search: string; level: string; family: string; outcome: string; sort: string; down: string; open: string }
export const NOTHING: View = { search: "", level: "", family: "", outcome: "", sort: "", down: "1", open: "" };
const VERBS = ["faster", "even", "slower"];

export const where = (record: Rec): string => (record.level ? `${record.suite}/${record.level}` : record.suite);
export const speed = (record: Rec): number | null => record.timing?.speedup ?? null;
export const versus = (record: Rec): number | null => record.timing?.speedup_vs_compile ?? null;
export const roof = (record: Rec): number | null => record.timing?.roofline_fraction ?? null;
export const correct = (record: Rec): boolean => record.outcome === "correct";
/** What may be said of a speed: "even" where the interval has 1 in it. */
export const verb = (record: Rec): string => (!record.timing ? "" : record.timing.speedup_low > 1 ? "faster" : record.timing.speedup_high < 1 ? "slower" : "even");
export const geomean = (records: Rec[], of = speed): number | null => mean(records.map(of).filter((value): value is number => !!value));

export interface Column { name: string; title: string; number: boolean; of: (record: Rec) => string | number | null }
export const COLUMNS: Column[] = [
  { name: "key", title: "Task", number: false, of: (record) => record.key }, { name: "family", title: "Family", number: false, of: (record) => record.family },
  { name: "outcome", title: "Outcome", number: false, of: (record) => record.outcome }, { name: "kernel", title: "Kernel ms", number: true, of: (record) => record.timing?.kernel_ms ?? null },
  { name: "eager", title: "Eager ms", number: true, of: (record) => record.timing?.eager_ms ?? null }, { name: "speed", title: "Over eager", number: true, of: speed },
  { name: "versus", title: "Over compile", number: true, of: versus }, { name: "roof", title: "Roofline", number: true, of: roof },
  { name: "seconds", title: "Took s", number: true, of: (record) => record.seconds },
];

export function matching(records: Rec[], view: View): Rec[] {
  const words = view.search.toLowerCase().split(/\s+/).filter(Boolean);
  return records.filter((record) =>
    (!view.level || where(record) === view.level) && (!view.family || record.family === view.family) &&
    (!view.outcome || (VERBS.includes(view.outcome) ? verb(record) === view.outcome : record.outcome === view.outcome)) &&
    words.every((word) => `${record.key} ${record.family} ${record.reason}`.toLowerCase().includes(word)));
}

export function ordered(records: Rec[], view: View): Rec[] {
  const column = COLUMNS.find((one) => one.name === view.sort);
  if (!column) return records;
  const sign = view.down ? -1 : 1;
  return [...records].sort((a, b) => {
    const left = column.of(a), right = column.of(b);
    if (left === null || right === null) return Number(left === null) - Number(right === null); // what has no value comes last, either way
    return sign * (typeof left === "string" ? left.localeCompare(String(right), "en", { numeric: true }) : left - Number(right));
  });
}

export function grouped<T>(items: T[], by: (item: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const item of items) {
    const known = found.get(by(item));
    if (known) known.push(item);
    else found.set(by(item), [item]);
  }
  return found;
}

/** A record in a few lines, for a tip over its dot. */
export function describe(record: Rec): string {
  const { timing } = record;
  if (!timing) return record.key;
  const lines = [record.key, `${times(timing.speedup)} eager  [${times(timing.speedup_low)}, ${times(timing.speedup_high)}]`];
  if (timing.speedup_vs_compile) lines.push(`${times(timing.speedup_vs_compile)} torch.compile`);
  lines.push(`kernel ${milli(timing.kernel_ms)} ms, eager ${milli(timing.eager_ms)} ms`);
  if (timing.roofline_fraction) lines.push(`roofline ${milli(timing.roofline_ms)} ms: reaches ${percent(timing.roofline_fraction)}`);
  return lines.join("\n");
}

export const intervalOf = (timing: Timing): string => `${times(timing.speedup)}  [${times(timing.speedup_low)}, ${times(timing.speedup_high)}]`;

export function remember(view: View): void {
  const kept = new URLSearchParams(Object.entries(view).filter(([name, value]) => value && (name !== "down" || view.sort)));
  history.replaceState(null, "", location.pathname + location.search + (String(kept) ? "#" + kept : ""));
}

export function recall(): View {
  const asked = new URLSearchParams(location.hash.slice(1));
  const found = Object.fromEntries(Object.keys(NOTHING).map((name) => [name, asked.get(name) ?? ""])) as unknown as View;
  return found.sort ? found : { ...found, down: "1" };
}
