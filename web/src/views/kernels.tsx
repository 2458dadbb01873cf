// Every kernel that was judged, beside its sketch; and any two texts of the run compared.
import { useState } from "react";
import type { Run, Step } from "../api";
import { times, words } from "../format";
import { Empty, Status, Wrong } from "../parts/basics";
import { Code } from "../parts/code";
import { Diff } from "../parts/diff";
import { useText, VerdictOf } from "./texts";

export interface Judged { step: Step; kernel: string; sketch: string | null; best: boolean }

export function kernelsOf(run: Run): Judged[] {
  const found = new Map<string, Judged>();
  for (const step of run.steps) {
    const kernel = step.inputs.kernel;
    if (!kernel || step.facts.status === undefined) continue;
    const known = found.get(kernel);
    if (!known || known.step.facts.speedup === undefined || known.step.facts.speedup === null) found.set(kernel, { step, kernel, sketch: step.inputs.sketch ?? known?.sketch ?? null, best: kernel === run.best });
  }
  const speed = (one: Judged) => (typeof one.step.facts.speedup === "number" ? one.step.facts.speedup : -1);
  return [...found.values()].sort((a, b) => Number(b.best) - Number(a.best) || speed(b) - speed(a) || b.step.number - a.step.number);
}

const title = (one: Judged): string =>
  `step ${one.step.number}: ${one.best ? "the best, " : ""}${words(String(one.step.facts.status))}${typeof one.step.facts.speedup === "number" ? " " + times(one.step.facts.speedup) : ""}`;

export function Kernels({ run, kernels }: { run: Run; kernels: Judged[] }) {
  const [chosen, choose] = useState<string | null>(null);
  const one = kernels.find((kernel) => kernel.kernel === chosen) ?? kernels[0];
  const kernel = useText(run.run, one?.kernel), sketch = useText(run.run, one?.sketch);
  if (!one) return <Empty>No kernel was judged yet.</Empty>;
  return (
    <>
      <div className="controls"><label>Kernel <select value={one.kernel} onChange={(event) => choose(event.target.value)}>{kernels.map((each) => <option key={each.kernel} value={each.kernel}>{title(each)}</option>)}</select></label>
        <Status of={String(one.step.facts.status)} /> <span className="soft">{typeof one.step.facts.author === "string" ? `by ${one.step.facts.author}` : ""}</span></div>
      <Wrong error={kernel.error} />
      <div className={one.sketch ? "columns wide-left" : ""}>
        {kernel.text !== null && <Code title="kernel" text={kernel.text} tall />}
        {one.sketch && sketch.text !== null && <Code title="sketch" text={sketch.text} tall />}
      </div>
      {one.step.result && <section className="card pad"><h2>Verdict</h2><VerdictOf run={run.run} step={one.step} /></section>}
    </>
  );
}

interface Choice { hash: string; title: string }

export function Compare({ run, kernels }: { run: Run; kernels: Judged[] }) {
  const [kind, setKind] = useState<"kernel" | "sketch">("kernel");
  const choices: Choice[] = kernels.map((one) => ({ hash: kind === "kernel" ? one.kernel : one.sketch ?? "", title: title(one) })).filter((one) => one.hash);
  const [left, setLeft] = useState<string | null>(null), [right, setRight] = useState<string | null>(null);
  const first = choices.find((one) => one.hash === left) ?? choices[choices.length - 1], second = choices.find((one) => one.hash === right) ?? choices[0];
  const before = useText(run.run, first?.hash), after = useText(run.run, second?.hash);
  if (kernels.length < 1) return <Empty>There is nothing to compare yet.</Empty>;
  const pick = (label: string, chosen: Choice | undefined, set: (hash: string) => void) => (
    <label>{label} <select value={chosen?.hash} onChange={(event) => set(event.target.value)}>{choices.map((one) => <option key={one.hash} value={one.hash}>{one.title}</option>)}</select></label>
  );
  return (
    <>
      <div className="controls">
        <label>Compare <select value={kind} onChange={(event) => setKind(event.target.value as "kernel" | "sketch")}><option value="kernel">kernels</option><option value="sketch">sketches</option></select></label>
        {pick("from", first, setLeft)}{pick("to", second, setRight)}
      </div>
      <Wrong error={before.error ?? after.error} />
      {before.text !== null && after.text !== null && first && second && <Diff before={before.text} after={after.text} titles={[first.title, second.title]} />}
    </>
  );
}
