// A sketch: designed from a task, edited, checked while it is written with faults at their lines, and run against the task.
import { useEffect, useRef, useState } from "react";
import { question, type About } from "../api";
import { Empty, Wrong } from "../parts/basics";
import { Code } from "../parts/code";
import { Editor } from "../parts/editor";
import { Choice, languagesOf, NO_TASK, TaskEditor, useKept, type TaskDraft } from "./draft";

interface Checked { faults: { line: number; reason: string; hint: string }[]; sketch: string; seconds: number; run: { outcome: string; faults: string[]; kernel: string; lowering: string; seconds: number } | null }

export function Sketching({ about }: { about: About }) {
  const [task, setTask] = useKept<TaskDraft>("task", NO_TASK);
  const [sketch, setSketch] = useKept("sketch", "");
  const [dsl, setDsl] = useKept("sketch-dsl", about.languages[0]?.name ?? "cpp");
  const [checked, setChecked] = useState<Checked | null>(null);
  const [error, fail] = useState<unknown>(null);
  const [doing, setDoing] = useState("");
  const round = useRef(0);

  useEffect(() => {
    if (!sketch.trim()) return setChecked(null);
    const mine = ++round.current;
    const later = setTimeout(() => question<Checked>("sketch", { sketch }).then((told) => mine === round.current && setChecked(told), (caught) => mine === round.current && fail(caught)), 450);
    return () => clearTimeout(later);
  }, [sketch]);

  const design = () => {
    setDoing("design");
    fail(null);
    question<{ sketch: string }>("design", { task, dsl }).then((told) => setSketch(told.sketch), fail).finally(() => setDoing(""));
  };
  const run = () => {
    setDoing("run");
    fail(null);
    const mine = ++round.current;
    question<Checked>("sketch", { sketch, task, dsl }).then((told) => mine === round.current && setChecked(told), fail).finally(() => setDoing(""));
  };
  const marks = new Map(checked?.faults.map((fault) => [fault.line, fault.reason + (fault.hint ? ` (${fault.hint})` : "")]) ?? []);
  const ran = checked?.run;
  return (
    <>
      <div className="columns">
        <TaskEditor task={task} set={setTask} about={about} label="Task" rows={16} />
        <div>
          <Editor label="Sketch" value={sketch} change={(text) => { setSketch(text); fail(null); }} marks={marks} rows={16} placeholder="Design one from the task, or paste one" />
          <div className="fields">
            <Choice label="Language" value={dsl} set={setDsl} options={languagesOf(about)} />
            <div className="actions"><button type="button" disabled={!!doing} onClick={design}>{doing === "design" ? "Designing …" : "Design from the task"}</button>
              <button type="button" className="primary" disabled={!!doing || !sketch.trim() || marks.size > 0} onClick={run}>{doing === "run" ? "Running …" : "Run against the task"}</button></div>
          </div>
        </div>
      </div>
      <div className="command"><code>{`kernelwright sketch sketch.py --run --against ${task.suite || task.name + ".py"}`}</code></div>
      <section className="card pad" aria-live="polite"><h2>What is known of it</h2>
        <Wrong error={error} />
        {!checked ? <Empty>Checked as you write: shapes, dtypes, bounds, reads before writes, races.</Empty>
          : marks.size ? <p className="wrong">{marks.size} {marks.size === 1 ? "fault" : "faults"}, at {[...marks.keys()].filter((line) => line > 0).map((line) => `line ${line}`).join(", ") || "no line"}.</p>
          : <p className="fine">Shapes, dtypes, bounds, reads and races are in order.</p>}
        {ran && (ran.outcome === "right" ? <p className="fine">It computes what the task does ({ran.seconds.toFixed(1)} s).</p>
          : <div className="wrong">{ran.outcome === "unproved" ? "The interpreter could not finish: " + ran.lowering : "It does not compute what the task does:"}<ul>{ran.faults.map((fault) => <li key={fault}>{fault}</li>)}</ul></div>)}
        {ran?.kernel && <Code title={`lowered to ${dsl}`} text={ran.kernel} tall />}
        {ran && !ran.kernel && ran.lowering && ran.outcome === "right" && <p className="note">It cannot be lowered by rule: {ran.lowering}</p>}
      </section>
    </>
  );
}
