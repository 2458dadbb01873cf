// A kernel in one language, and the one that it becomes in another, side by side.
import { useCallback, useEffect, useState } from "react";
import { get, post, type About, type Run } from "../api";
import { useChanges } from "../live";
import { Empty, Status, Wrong } from "../parts/basics";
import { Code } from "../parts/code";
import { Editor } from "../parts/editor";
import { follow } from "../route";
import { Choice, Command, languagesOf, useKept } from "./draft";
import { useText } from "./texts";

export function Migrating({ about }: { about: About }) {
  const [kernel, setKernel] = useKept("migrate-kernel", "");
  const [form, setForm] = useKept("migrating", { name: "kernel", kernel_dsl: "", dsl: about.languages[0]?.name ?? "cpp", target: "auto", inputs: "", init: "", task: "", timing: true });
  const [name, setName] = useKept<string | null>("migration", null);
  const [error, fail] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const put = (field: keyof typeof form) => (value: string) => setForm({ ...form, [field]: value });
  const job = {
    command: "migrate", kernel, dsl: form.dsl, target: form.target, timing: form.timing, ...(form.kernel_dsl ? { kernel_dsl: form.kernel_dsl } : {}),
    task: form.task.trim() ? { name: form.name, source: form.task } : { name: form.name, inputs: form.inputs, init: form.init },
  };
  const start = () => {
    setBusy(true);
    fail(null);
    post<{ run: string }>("/jobs", job).then((told) => setName(told.run), fail).finally(() => setBusy(false));
  };
  return (
    <>
      <div className="columns">
        <div>
          <Editor label="Kernel to migrate" value={kernel} change={setKernel} rows={24} placeholder="A kernel file: ours, or one of somebody else" drop={(dropped) => setForm({ ...form, name: /^[A-Za-z_]/.test(dropped) ? dropped : "kernel" })} />
          <form className="fields" onSubmit={(event) => { event.preventDefault(); start(); }}>
            <Choice label="From" value={form.kernel_dsl} set={put("kernel_dsl")} options={[["", "as the file says"], ...languagesOf(about)]} />
            <Choice label="To" value={form.dsl} set={put("dsl")} options={languagesOf(about)} />
            <Choice label="Target" value={form.target} set={put("target")} options={about.targets} />
            {!form.task.trim() && <><label>Called with <input value={form.inputs} placeholder="where no sketch says it: f32[128,512]" onChange={(event) => put("inputs")(event.target.value)} /></label>
              <label>Constructed with <input value={form.init} onChange={(event) => put("init")(event.target.value)} /></label></>}
            <label className="check"><input type="checkbox" checked={form.timing} onChange={(event) => setForm({ ...form, timing: event.target.checked })} /> time both</label>
            <div className="actions"><button type="submit" className="primary" disabled={busy || !kernel.trim()}>{busy ? "Starting …" : "Migrate"}</button></div>
          </form>
          <details className="card pad"><summary>What it computes (a task; without one, the kernel is its own reference)</summary><Editor label="Task of the kernel" value={form.task} change={put("task")} rows={10} /></details>
          {kernel.trim() && <Command form={job} />}
          <Wrong error={error} />
        </div>
        {name ? <Outcome name={name} key={name} /> : <section className="card pad"><Empty>The new kernel appears here, beside the one that it was made from.</Empty></section>}
      </div>
    </>
  );
}

function Outcome({ name }: { name: string }) {
  const [run, setRun] = useState<Run | null>(null);
  const [error, fail] = useState<unknown>(null);
  const load = useCallback(() => { get<Run>(`/runs/${name}`).then((told) => { setRun(told); fail(null); }, fail); }, [name]);
  useEffect(load, [load]);
  useChanges((rows, all) => { if (!all || rows.some((row) => row.run === name)) load(); });
  const kernel = useText(name, run?.best);
  if (!run) return <section className="card pad"><Wrong error={error} /></section>;
  return (
    <section className="migrated" aria-live="polite">
      <p className="controls"><Status of={run.status} /> <a href={"/run/" + name} onClick={follow}>the whole run</a>{run.best && <a className="button primary" href={`/api/runs/${name}/kernel.py`} download>Download kernel</a>}</p>
      {kernel.text !== null && <Code title={`in ${String(run.job.to ?? "")}`} text={kernel.text} tall />}
      <ol className="last">{run.steps.map((step) => <li key={step.number}><b>{step.kind}</b> {step.reason}</li>)}</ol>
      {run.said && <Code title="the end of what it wrote" text={run.said} />}
    </section>
  );
}
