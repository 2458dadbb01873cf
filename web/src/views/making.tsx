// A module in; its description and flags, and a run that makes or tunes a kernel, out.
import { useState } from "react";
import { post, Problem, question, type About } from "../api";
import { Empty, Facts, Wrong } from "../parts/basics";
import { openRun } from "./runs";
import { Choice, Command, languagesOf, NO_TASK, TaskEditor, useKept, type TaskDraft } from "./draft";

export interface Described {
  task: string; inputs: string; outputs: string; parameters: number; flops: number; input_bytes: number; output_bytes: number; parameter_bytes: number;
  eager_seconds: number; shapes: number; longest_reduction: number; trials: string[]; reference: string; flags: string[]; hash: string;
}

export function Making({ about }: { about: About }) {
  const [task, setTask] = useKept<TaskDraft>("task", NO_TASK);
  const [form, setForm] = useKept("making", { command: "generate", dsl: about.languages[0]?.name ?? "cpp", target: "auto", effort: "quick", budget: "", model: "builtin", track: "pure", timing: true, max_cost: "" });
  const [described, setDescribed] = useState<{ of: string; told: Described } | null>(null);
  const [error, fail] = useState<unknown>(null);
  const [doing, busy] = useState("");
  const language = about.languages.find((one) => one.name === form.dsl);
  const job = {
    command: form.command, task, dsl: form.dsl, target: form.command === "tune" ? "auto" : form.target, track: form.track, effort: form.effort as string, budget: form.budget, model: form.model,
    timing: form.timing, ...(form.max_cost && form.model !== "builtin" ? { max_cost: Number(form.max_cost) } : {}),
  };
  const put = (name: keyof typeof form) => (value: string) => setForm({ ...form, [name]: value });
  const describe = () => {
    busy("describe");
    fail(null);
    question<Described>("task", task).then((told) => setDescribed({ of: JSON.stringify(task), told }), fail).finally(() => busy(""));
  };
  const start = () => {
    busy("start");
    fail(null);
    post<{ run: string }>("/jobs", job).then((told) => openRun(told.run), fail).finally(() => busy(""));
  };
  const marks = error instanceof Problem && error.line ? new Map([[error.line, error.message]]) : undefined;
  return (
    <div className="bench-columns">
      <TaskEditor task={task} set={setTask} about={about} marks={marks} rows={22} />
      <div className="side">
        <form className="card pad fields" onSubmit={(event) => { event.preventDefault(); start(); }}>
          <Choice label="Do" value={form.command} set={put("command")} options={[["generate", "make a kernel"], ["tune", "make one and tune it"]]} />
          <Choice label="Language" value={form.dsl} set={put("dsl")} options={languagesOf(about)} />
          {form.command === "generate" && <Choice label="Target" value={form.target} set={put("target")} options={about.targets} />}
          {form.command === "generate" && <Choice label="Effort" value={form.effort} set={put("effort")} options={about.efforts} />}
          <label>Budget <input value={form.budget} placeholder={form.command === "tune" ? "60s" : "none"} onChange={(event) => put("budget")(event.target.value)} /></label>
          <label>Model <input list="models" value={form.model} onChange={(event) => put("model")(event.target.value)} /></label>
          <datalist id="models">{[...about.models, "openai:", "anthropic:"].map((name) => <option key={name} value={name} />)}</datalist>
          {form.model !== "builtin" && <label>US dollars at most <input type="number" min="0" step="any" value={form.max_cost} onChange={(event) => put("max_cost")(event.target.value)} /></label>}
          <Choice label="Track" value={form.track} set={put("track")} options={["pure", "hybrid"]} />
          <label className="check"><input type="checkbox" checked={form.timing} onChange={(event) => setForm({ ...form, timing: event.target.checked })} /> time it against PyTorch</label>
          {language && !language.timed && <p className="soft">Without its device here: executed as compiled, never timed.</p>}
          <div className="actions"><button type="button" disabled={!!doing} onClick={describe}>{doing === "describe" ? "Looking …" : "Describe task"}</button>
            <button type="submit" className="primary" disabled={!!doing}>{doing === "start" ? "Starting …" : "Start"}</button></div>
          <Wrong error={marks ? null : error} />
        </form>
        <Command form={job} />
        <section className="card pad" aria-live="polite"><h2>The task</h2>
          {described && described.of === JSON.stringify(task) ? <Description of={described.told} /> : <Empty>{doing === "describe" ? "The reference runs in the sandbox …" : "Describe it to see what the judge knows, and what it cannot tell."}</Empty>}</section>
      </div>
    </div>
  );
}

export function Description({ of }: { of: Described }) {
  const moved = of.input_bytes + of.output_bytes + of.parameter_bytes;
  return (
    <>
      <Facts rows={[
        ["inputs", of.inputs + (of.shapes > 1 ? ` (and ${of.shapes - 1} more shapes)` : "")], ["outputs", of.outputs], ["parameters", of.parameters.toLocaleString()],
        ["moves", `${+(moved / 1e6).toPrecision(3)} MB at least`], ["computes", `${+(of.flops / 1e9).toPrecision(3)} GFLOP in products, longest sum ${of.longest_reduction.toLocaleString()} terms`],
        ["eager", `about ${+(of.eager_seconds * 1e3).toPrecision(3)} ms`], ["trials", `${of.trials.length}, against ${of.reference}`],
      ]} />
      {of.flags.length ? of.flags.map((flag) => <p key={flag} className="note">{flag}</p>) : <p className="fine">No null kernel passes: this task can tell.</p>}
    </>
  );
}
