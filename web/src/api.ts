// What the server says, typed, and how it is asked. Every request carries our header; the server answers nobody else.
export interface RunRow {
  run: string; status: string; task: string; dsl: string; target: string; model: string; command: string; effort: string;
  speedup: number | null; steps: number; cost_usd: number; budget: number | null; max_cost: number | null;
  started: number; touched: number; seconds: number; best: number[]; damaged: string[];
}
export interface RunPage {
  total: number; all: number; rows: RunRow[]; version: number; trouble: string;
  choices: Record<"status" | "dsl" | "target", Record<string, number>>;
}
export type Facts = Record<string, unknown>;
export interface Step {
  number: number; kind: string; reason: string; inputs: Record<string, string>; result: string | null; facts: Facts; at: number; parent: number | null;
}
export interface CurvePoint { step: number; seconds: number; speedup: number; by: "verdict" | "race" }
export interface Variant { step: number; seconds: number; speedup: number; island: number | null; kind: string; what: string }
export interface Run {
  run: string; status: string; best: string | null; started: number; seconds: number; job: Facts; command: string; damaged: string[];
  spent: { calls: number; tokens_in: number; tokens_out: number; cost_usd: number; unpriced: number };
  texts: { task: string | null; given: string | null }; steps: Step[]; curve: CurvePoint[]; population: Variant[];
  row: RunRow | null; held: boolean; said: string;
}
export interface Timing {
  kernel_ms: number; eager_ms: number; compile_ms: number | null; speedup: number; speedup_low: number; speedup_high: number;
  speedup_vs_compile: number | null; speedup_vs_compile_low: number | null; speedup_vs_compile_high: number | null;
  rivals: { name: string; ms: number; speedup: number; speedup_low: number; speedup_high: number }[];
  roofline_ms: number | null; roofline_fraction: number | null; bound: string | null; bandwidth_gb_s: number | null;
  kernel_mb: number | null; eager_mb: number | null; noise: number; rounds: number; cache: string; threads: number;
}
export interface Heat { shape: number[]; axes: number[]; rows: number; columns: number; share: number[] }
export interface Mismatch {
  output: string; wrong: number; total: number; region: string; worst_error: number | null; bound: number | null;
  samples: string[]; place: number[]; trial: string; heat?: Heat | null;
}
export interface Launch {
  name: string; grid: number[]; block: number[]; times: number; advice: string[];
  predicted: { ms: number; error: number; bound: string };
  lines: { file: string; line: number; source: string; share: number; instructions: number; sectors_per_request: number | null; least_sectors: number | null; bank_passes_per_request: number | null; least_passes: number | null }[];
}
export interface Verdict extends Facts {
  status: string; reason: string; task: string; dsl: string; target: string; execution: string; sandbox: string; track: string;
  library_calls: string[]; trials: { seeds: number; distributions: string[]; shapes: number; noncontiguous: number; reference: string };
  timing: Timing | null; mismatch: Mismatch | null; build: { message: string; excerpt: string } | null;
  compiled_for: Record<string, Facts> | null; task_flags: string[]; warnings: string[]; stderr_tail: string; seconds: number; phases: Record<string, number>;
}
export interface About {
  version: string; languages: { name: string; title: string; timed: boolean }[]; targets: string[]; efforts: string[]; models: string[];
  suites: Record<string, string[]>;
}
export interface Answer<T> { state: "waiting" | "done" | "failed"; answer: T | null; error: string; line: number | null }

export class Problem extends Error {
  constructor(readonly status: number, sentence: string, readonly line: number | null = null) {
    super(sentence);
  }
}

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { "X-Kernelwright": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch("/api" + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Problem(0, "the server does not answer; is kernelwright serve running?");
  }
  if (answer.status === 204) return undefined as T;
  const told = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Problem(answer.status, String(told.error ?? told.detail ?? answer.status), told.line ?? null);
  return told as T;
}

export const get = <T>(path: string): Promise<T> => ask<T>("GET", path);
export const post = <T>(path: string, body: unknown = {}): Promise<T> => ask<T>("POST", path, body);

/** A question, until it is answered. */
export async function question<T>(kind: string, body: unknown = {}, signal?: AbortSignal): Promise<T> {
  const { question: name } = await post<{ question: string }>("/questions/" + kind, body);
  for (let wait = 120; ; wait = Math.min(wait * 1.3, 800)) {
    const told = await get<Answer<T>>("/questions/" + name);
    if (told.state === "done") return told.answer as T;
    if (told.state === "failed") throw new Problem(400, told.error, told.line);
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (signal?.aborted) throw new Problem(0, "no longer asked");
  }
}

/** The token that the address brought becomes a cookie, and leaves the address. */
export async function login(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  await post("/login", { token });
}
