// The journal as a tree, each step under the one whose result it used, with its reason; and one step with all it was given.
import { useEffect, useMemo, useRef, type KeyboardEvent } from "react";
import { Problem, type Step } from "../api";
import { duration, percent, times, words } from "../format";
import { Empty, Facts, Status, Wrong } from "../parts/basics";
import { Code } from "../parts/code";
import { VerdictView } from "../parts/verdict";
import { asVerdict, useText } from "./texts";

interface Node { step: Step; depth: number }

export function asTree(steps: Step[]): Node[] {
  const below = new Map<number | null, Step[]>();
  const known = new Set(steps.map((step) => step.number));
  for (const step of steps) {
    const parent = step.parent !== null && known.has(step.parent) ? step.parent : null;
    below.set(parent, [...(below.get(parent) ?? []), step]);
  }
  const found: Node[] = [];
  const walk = (parent: number | null, depth: number) => {
    for (const step of below.get(parent) ?? []) {
      found.push({ step, depth });
      walk(step.number, depth + 1);
    }
  };
  walk(null, 0);
  return found;
}

export function StepTree({ steps, chosen, choose, started }: { steps: Step[]; chosen: number; choose: (step: number) => void; started: number }) {
  const nodes = useMemo(() => asTree(steps), [steps]);
  const host = useRef<HTMLUListElement>(null);
  const moved = useRef(false);
  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    const node = host.current?.querySelector<HTMLElement>("[aria-selected=true]");
    node?.focus();
    node?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const keys = (event: KeyboardEvent) => {
    const at = nodes.findIndex((node) => node.step.number === chosen);
    const next = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: nodes.length - 1 }[event.key];
    if (next === undefined || next < 0 || next >= nodes.length) return;
    event.preventDefault();
    moved.current = true;
    choose(nodes[next].step.number);
  };
  return (
    <ul className="tree card" role="tree" aria-label="Steps" ref={host} onKeyDown={keys}>
      {nodes.map(({ step, depth }) => (
        <li key={step.number} role="treeitem" aria-level={depth + 1} aria-selected={step.number === chosen} tabIndex={step.number === chosen ? 0 : -1}
          onClick={() => choose(step.number)} style={{ paddingLeft: 10 + Math.min(depth, 10) * 16 }} data-step={step.number}>
          <span className="soft number">{step.number}</span> <b>{words(step.kind)}</b> {typeof step.facts.status === "string" && <Status of={step.facts.status} />}{" "}
          {typeof step.facts.speedup === "number" && <span className="speed number">{times(step.facts.speedup)}</span>} <span className="soft number at">{duration(Math.max(0, step.at - started))}</span>
          <div className="reason">{step.reason}</div>
        </li>
      ))}
    </ul>
  );
}

const OWN = new Set(["places", "status", "speedup"]);

export function StepDetail({ run, step }: { run: string; step: Step }) {
  const facts = Object.entries(step.facts).filter(([name, value]) => !OWN.has(name) && value !== null && value !== "" && !(Array.isArray(value) && !value.length));
  return (
    <section className="step card pad" aria-label={`Step ${step.number}`}>
      <h2>{step.number} {words(step.kind)}</h2>
      <p>{step.reason}</p>
      <Facts rows={facts.map(([name, value]) => [words(name), typeof value === "object" ? (Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join("; ") : JSON.stringify(value)) : typeof value === "number" ? String(+value.toPrecision(6)) : String(value)])} />
      {Array.isArray(step.facts.places) && <Places places={step.facts.places as Record<string, unknown>[]} />}
      {step.result && <Text run={run} hash={step.result} title={resultTitle(step)} />}
      {Object.entries(step.inputs).reverse().map(([name, hash]) => <Text key={name} run={run} hash={hash} title={words(name)} />)}
    </section>
  );
}

function resultTitle(step: Step): string {
  if ("tokens_out" in step.facts) return "answer";
  return step.kind === "judged" ? "verdict" : step.kind === "designed" ? "sketch" : "result";
}

function Text({ run, hash, title }: { run: string; hash: string; title: string }) {
  const { text, error } = useText(run, hash);
  if (error) return error instanceof Problem && error.status === 404 ? <p className="soft">{title}: no longer kept</p> : <Wrong error={error} />;
  if (text === null) return <Empty>Loading …</Empty>;
  const verdict = asVerdict(text);
  return verdict ? <VerdictView verdict={verdict} /> : <Code title={title} text={text} tall />;
}

function Places({ places }: { places: Record<string, unknown>[] }) {
  const speed = (place: Record<string, unknown>) => (typeof place.relative === "number" && place.relative > 0 ? 1 / place.relative : null);
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Variants of this race">
      <table className="grid"><thead><tr><th>variant</th><th>island</th><th>kind of design</th><th className="number">over the first</th><th>said</th></tr></thead>
        <tbody>{[...places].sort((a, b) => (speed(b) ?? 0) - (speed(a) ?? 0)).map((place, at) => (
          <tr key={at}><th scope="row">{String(place.what ?? "")}</th><td>{typeof place.island === "number" ? place.island + 1 : ""}</td><td>{String(place.kind ?? "")}</td><td className="number">{times(speed(place))}</td>
            <td>{typeof place.fault === "string" ? place.fault : typeof place.share === "number" ? percent(place.share) : ""}</td></tr>
        ))}</tbody></table>
    </div>
  );
}
