// What all tabs of the workbench share: a task as it is typed, kept in this browser; its choosers; the command line below a form.
import { useEffect, useRef, useState } from "react";
import { post, type About } from "../api";
import { Copy } from "../parts/basics";
import { Editor } from "../parts/editor";

export interface TaskDraft { name: string; source: string; class_name: string; inputs: string; init: string; suite: string }

export const STARTER = `import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
`;
export const NO_TASK: TaskDraft = { name: "task", source: STARTER, class_name: "Model", inputs: "", init: "", suite: "" };

/** State that survives a reload of the page. */
export function useKept<T>(name: string, first: T): [T, (value: T) => void] {
  const [value, set] = useState<T>(() => {
    try {
      const text = sessionStorage.getItem(name);
      return text ? (JSON.parse(text) as T) : first;
    } catch {
      return first;
    }
  });
  useEffect(() => {
    try {
      sessionStorage.setItem(name, JSON.stringify(value));
    } catch {
      /* nothing to keep it in */
    }
  }, [name, value]);
  return [value, set];
}

const classesOf = (source: string): string[] => [...source.matchAll(/^class\s+([A-Za-z_]\w*)/gm)].map((match) => match[1]);
const functionsOf = (source: string): string[] => [...source.matchAll(/^def\s+([A-Za-z_]\w*)/gm)].map((match) => match[1]);

export function TaskEditor({ task, set, about, marks, rows, label = "PyTorch module" }: {
  task: TaskDraft; set: (task: TaskDraft) => void; about: About; marks?: Map<number, string>; rows?: number; label?: string;
}) {
  const whole = /def get_inputs\b/.test(task.source);
  const names = [...new Set([...classesOf(task.source), ...(whole ? [] : functionsOf(task.source))])];
  const edit = (source: string) => {
    const found = classesOf(source);
    const class_name = found.includes(task.class_name) ? task.class_name : found.includes("Model") ? "Model" : found[found.length - 1] ?? task.class_name;
    set({ ...task, source, class_name, suite: "" });
  };
  return (
    <div className="task-editor">
      {!task.suite ? <Editor label={label} value={task.source} change={edit} marks={marks} rows={rows} placeholder="Paste a module, or drop a file here" drop={(name) => set({ ...task, name: /^[A-Za-z_]/.test(name) ? name.slice(0, 60) : "task", source: task.source, suite: "" })} />
        : <p className="card pad">The task <b>{task.suite}</b> of our suites. <button type="button" className="quiet" onClick={() => set({ ...task, suite: "" })}>Write one instead</button></p>}
      <div className="fields">
        <label>Suite's task <select value={task.suite} onChange={(event) => set({ ...task, suite: event.target.value })}>
          <option value="">none: the text above</option>
          {Object.entries(about.suites).map(([suite, tasks]) => <optgroup key={suite} label={suite}>{tasks.map((name) => <option key={name} value={`${suite}/${name}`}>{name}</option>)}</optgroup>)}
        </select></label>
        {!task.suite && names.length > 0 && <label>Class <select value={names.includes(task.class_name) ? task.class_name : ""} onChange={(event) => set({ ...task, class_name: event.target.value })}>
          {!names.includes(task.class_name) && <option value="">choose</option>}{names.map((name) => <option key={name}>{name}</option>)}</select></label>}
        {!task.suite && !whole && <>
          <label>Called with <input value={task.inputs} placeholder="f32[128,512], i64[128]<1000" onChange={(event) => set({ ...task, inputs: event.target.value })} /></label>
          <label>Constructed with <input value={task.init} placeholder="512, eps=1e-5" onChange={(event) => set({ ...task, init: event.target.value })} /></label>
        </>}
      </div>
    </div>
  );
}

export function Choice({ label, value, set, options }: { label: string; value: string; set: (value: string) => void; options: string[] | [string, string][] }) {
  return (
    <label>{label} <select value={value} onChange={(event) => set(event.target.value)}>
      {options.map((option) => { const [name, title] = typeof option === "string" ? [option, option] : option; return <option key={name} value={name}>{title}</option>; })}
    </select></label>
  );
}

export const languagesOf = (about: About): [string, string][] => about.languages.map((one) => [one.name, one.title]);

/** The command that does the same as the form, asked of the server a moment after the form changed. */
export function Command({ form }: { form: unknown }) {
  const [line, set] = useState("");
  const [said, say] = useState("");
  const text = JSON.stringify(form), round = useRef(0);
  useEffect(() => {
    const mine = ++round.current;
    const later = setTimeout(() => post<{ command: string }>("/command", JSON.parse(text)).then(
      (told) => mine === round.current && (set(told.command), say("")),
      (error: Error) => mine === round.current && (set(""), say(error.message))), 350);
    return () => clearTimeout(later);
  }, [text]);
  return <div className="command" aria-live="polite">{line ? <><code>{line}</code><Copy text={line} /></> : <span className="soft">{said || "…"}</span>}</div>;
}
