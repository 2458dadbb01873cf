// One run: best over time, its search's population, the tree of its steps, its kernels, any two of them compared.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { get, post, type Run, type Step } from "../api";
import { duration, dollars, times, words } from "../format";
import { useChanges } from "../live";
import { Copy, Empty, Facts, Status, Tabs, Wrong } from "../parts/basics";
import { Code } from "../parts/code";
import { BestOverTime, Population } from "../parts/plot";
import { Kernels, Compare, kernelsOf } from "./kernels";
import { StepDetail, StepTree } from "./steps";
import { VerdictOf } from "./texts";

export function RunView({ run: name }: { run: string }) {
  const [run, setRun] = useState<Run | null>(null);
  const [error, fail] = useState<unknown>(null);
  const [tab, setTab] = useState(() => new URLSearchParams(location.search).get("tab") ?? "overview");
  const latest = useRef<Run | null>(null);
  const busy = useRef(false), again = useRef(false);

  const load = useCallback(async () => {
    if (busy.current) {
      again.current = true;
      return;
    }
    busy.current = true;
    try {
      const old = latest.current, after = old?.steps.length ? old.steps[old.steps.length - 1].number : 0;
      const told = await get<Run>(`/runs/${encodeURIComponent(name)}?after=${after}`);
      const seen = new Set(told.steps.map((step) => step.number));
      told.steps = [...(old?.steps.filter((step) => !seen.has(step.number)) ?? []), ...told.steps];
      latest.current = told;
      setRun(told);
      fail(null);
    } catch (caught) {
      fail(caught);
    }
    busy.current = false;
    if (again.current) {
      again.current = false;
      void load();
    }
  }, [name]);

  useEffect(() => {
    latest.current = null;
    setRun(null);
    void load();
  }, [load]);
  useChanges((rows, all) => {
    if (!all || rows.some((row) => row.run === name)) void load();
  });
  useEffect(() => {
    document.title = run ? `${String(run.job.task ?? run.run)} · Kernelwright` : "Kernelwright";
    return () => { document.title = "Kernelwright"; };
  }, [run]);

  const choose = (id: string) => {
    setTab(id);
    history.replaceState(null, "", location.pathname + (id === "overview" ? "" : "?tab=" + id));
  };
  if (!run) return error ? <Wrong error={error} /> : <Empty>Loading …</Empty>;
  const kernels = kernelsOf(run);
  return (
    <>
      <Head run={run} fail={fail} />
      <Wrong error={error} />
      {run.said && <Code title="the end of what it wrote" text={run.said} />}
      {run.damaged.map((what) => <p key={what} className="note">{what} of this run is damaged and left out</p>)}
      <Tabs label="Run" chosen={tab} choose={choose} tabs={[
        { id: "overview", title: "Overview", body: () => <Overview run={run} /> },
        { id: "steps", title: <>Steps <span className="soft number">{run.steps.length}</span></>, body: () => <Steps run={run} /> },
        { id: "kernels", title: <>Kernels <span className="soft number">{kernels.length}</span></>, body: () => <Kernels run={run} kernels={kernels} /> },
        { id: "compare", title: "Compare", body: () => <Compare run={run} kernels={kernels} /> },
        { id: "task", title: "Task", body: () => <TaskTab run={run} /> },
      ]} />
    </>
  );
}

function Head({ run, fail }: { run: Run; fail: (error: unknown) => void }) {
  const act = (what: string) => post(`/runs/${run.run}/${what}`).then(() => fail(null), fail);
  const best = run.curve.length ? run.curve[run.curve.length - 1] : null;
  const resumable = !run.held && !["done", "queued", "running"].includes(run.status);
  const { spent } = run;
  return (
    <header className="run-head">
      <div className="title-row">
        <h1>{String(run.job.task ?? "run")} <Status of={run.status} />{best && <span className="speed number">{times(best.speedup)}</span>}</h1>
        <div className="controls">
          {(run.held || run.status === "queued") && <button type="button" onClick={() => act("cancel")}>Cancel</button>}
          {resumable && <button type="button" className="primary" onClick={() => act("resume")}>Resume</button>}
          {run.best && <a className="button primary" href={`/api/runs/${run.run}/kernel.py`} download>Download kernel</a>}
        </div>
      </div>
      <p className="soft run-facts">
        {[String(run.job.to ?? run.job.dsl ?? ""), String(run.job.target ?? ""), String(run.job.track ?? ""), run.job.effort ? `effort ${run.job.effort}` : "", run.job.model ? `model ${run.job.model}` : "",
          duration(run.seconds), spent.calls ? `${spent.calls} calls, ${spent.tokens_in.toLocaleString()} + ${spent.tokens_out.toLocaleString()} tokens ${dollars(spent.cost_usd)}` : "", run.run].filter(Boolean).join(" · ")}
      </p>
      <div className="command"><code>{run.command}</code><Copy text={run.command} /></div>
    </header>
  );
}

function Overview({ run }: { run: Run }) {
  const judged = useMemo(() => {
    const right = run.steps.filter((step) => step.result && step.facts.status === "correct" && step.kind !== "answer");
    const speed = (step: Step) => (typeof step.facts.speedup === "number" ? step.facts.speedup : 0);
    const mine = run.best ? right.filter((step) => step.inputs.kernel === run.best) : [];
    const timed = (mine.length ? mine : right).reduce<Step | null>((best, step) => (!best || speed(step) >= speed(best) ? step : best), null);
    return timed ?? [...run.steps].reverse().find((step) => step.facts.status && step.result) ?? null;
  }, [run]);
  return (
    <div className="columns">
      <section className="card pad"><h2>Best over time</h2><p className="soft">Speed over PyTorch eager of the best correct kernel; races of a search as their factor over the kernel it began from</p>
        <BestOverTime points={run.curve} seconds={run.seconds} /></section>
      {run.population.length > 0 && <section className="card pad"><h2>Population</h2><p className="soft">Every variant that was raced, over the first kernel</p><Population variants={run.population} /><Kinds run={run} /></section>}
      <section className="card pad"><h2>{judged?.facts.status === "correct" ? "Verdict of the best" : "Last verdict"}</h2>
        {judged ? <VerdictOf run={run.run} step={judged} /> : <Empty>No kernel was judged yet.</Empty>}</section>
      <section className="card pad"><h2>Last steps</h2>
        <ol className="last">{run.steps.slice(-8).reverse().map((step) => <li key={step.number}><b>{words(step.kind)}</b> {typeof step.facts.speedup === "number" && <span className="speed number">{times(step.facts.speedup)}</span>} <span>{step.reason}</span></li>)}</ol></section>
    </div>
  );
}

/** The fastest of each kind of design, as the population keeps its elites. */
function Kinds({ run }: { run: Run }) {
  const kinds = new Map<string, { count: number; best: number }>();
  for (const one of run.population) {
    const known = kinds.get(one.kind);
    kinds.set(one.kind, { count: (known?.count ?? 0) + 1, best: Math.max(known?.best ?? 0, one.speedup) });
  }
  const rows = [...kinds].sort((a, b) => b[1].best - a[1].best);
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Kinds of design">
      <table className="grid"><thead><tr><th>kind of design</th><th className="number">variants</th><th className="number">best</th></tr></thead>
        <tbody>{rows.map(([kind, { count, best }]) => <tr key={kind}><th scope="row">{kind}</th><td className="number">{count}</td><td className="number">{times(best)}</td></tr>)}</tbody></table>
    </div>
  );
}

function Steps({ run }: { run: Run }) {
  const [chosen, choose] = useState<number | null>(null);
  const step = run.steps.find((one) => one.number === chosen) ?? run.steps[run.steps.length - 1];
  if (!step) return <Empty>No steps yet.</Empty>;
  return (
    <div className="beside">
      <StepTree steps={run.steps} chosen={step.number} choose={choose} started={run.started} />
      <StepDetail run={run.run} step={step} key={step.number} />
    </div>
  );
}

function TaskTab({ run }: { run: Run }) {
  return (
    <>
      <section className="card pad"><Facts rows={Object.entries(run.job).map(([name, value]) => [words(name), String(value)])} /></section>
      {run.texts.task && <Code title="task" text={run.texts.task} tall />}
      {run.texts.given && <Code title={run.job.command === "migrate" ? "the kernel to migrate" : "the kernel it began with"} text={run.texts.given} tall />}
    </>
  );
}
