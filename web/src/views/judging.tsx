// A kernel and its task in, the judge's verdict out.
import { useState } from "react";
import { question, type About, type Verdict } from "../api";
import { Empty, Wrong } from "../parts/basics";
import { Editor } from "../parts/editor";
import { VerdictView } from "../parts/verdict";
import { Choice, NO_TASK, TaskEditor, useKept, type TaskDraft } from "./draft";

export function Judging({ about }: { about: About }) {
  const [task, setTask] = useKept<TaskDraft>("task", NO_TASK);
  const [kernel, setKernel] = useKept("kernel", "");
  const [form, setForm] = useKept("judging", { dsl: "", target: "auto", track: "pure", timing: true });
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const [error, fail] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const judge = () => {
    setBusy(true);
    fail(null);
    setVerdict(null);
    const body = { task, kernel, dsl: form.dsl || null, target: form.target, track: form.track, timing: form.timing };
    question<Verdict>("kernel", body).then(setVerdict, fail).finally(() => setBusy(false));
  };
  const line = `kernelwright verify ${task.suite || task.name + ".py"} kernel.py${form.dsl ? " --dsl " + form.dsl : ""}${form.target !== "auto" ? " --target " + form.target : ""}${form.track !== "pure" ? " --track " + form.track : ""}${form.timing ? "" : " --no-timing"}`;
  return (
    <>
      <div className="columns">
        <TaskEditor task={task} set={setTask} about={about} label="Task" rows={16} />
        <div>
          <Editor label="Kernel" value={kernel} change={setKernel} rows={16} placeholder="A Python file that defines ModelNew" />
          <form className="fields" onSubmit={(event) => { event.preventDefault(); judge(); }}>
            <Choice label="Language" value={form.dsl} set={(dsl) => setForm({ ...form, dsl })} options={[["", "as the file says"], ...about.languages.map((one): [string, string] => [one.name, one.title]), ["python", "Python"]]} />
            <Choice label="Target" value={form.target} set={(target) => setForm({ ...form, target })} options={about.targets} />
            <Choice label="Track" value={form.track} set={(track) => setForm({ ...form, track })} options={["pure", "hybrid"]} />
            <label className="check"><input type="checkbox" checked={form.timing} onChange={(event) => setForm({ ...form, timing: event.target.checked })} /> time it</label>
            <div className="actions"><button type="submit" className="primary" disabled={busy || !kernel.trim()}>{busy ? "Judging …" : "Judge"}</button></div>
          </form>
        </div>
      </div>
      <div className="command"><code>{line}</code></div>
      <section className="card pad" aria-live="polite"><h2>Verdict</h2><Wrong error={error} />
        {verdict ? <VerdictView verdict={verdict} /> : !error && <Empty>{busy ? "The judge is at work; a first verdict waits for torch to be imported …" : "Is it right, is it honest, how fast is it."}</Empty>}</section>
    </>
  );
}
