// Two texts beside each other. Myers' shortest edit script over lines, bounded; what is equal is folded away.
import { useMemo, useState } from "react";
import { lines as coloured } from "../highlight";
import { Pieces } from "./code";

type Kind = "same" | "gone" | "new";
interface Line { kind: Kind; left: number; right: number }
const MOST_EDITS = 4000;
const AROUND = 3;

export function edits(a: string[], b: string[]): Line[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const n = a.length - head - tail, m = b.length - head - tail;
  const found: Line[] = [];
  for (let at = 0; at < head; at++) found.push({ kind: "same", left: at, right: at });
  found.push(...middle(a, b, head, n, m));
  for (let at = 0; at < tail; at++) found.push({ kind: "same", left: a.length - tail + at, right: b.length - tail + at });
  return found;
}

function middle(a: string[], b: string[], from: number, n: number, m: number): Line[] {
  const most = Math.min(n + m, MOST_EDITS), trace: Int32Array[] = [];
  const v = new Int32Array(2 * most + 3), base = most + 1;
  let reached = -1;
  outer: for (let d = 0; d <= most; d++) {
    trace.push(v.slice(base - d - 1, base + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v[base + k - 1] < v[base + k + 1]) ? v[base + k + 1] : v[base + k - 1] + 1;
      while (x < n && x - k < m && a[from + x] === b[from + x - k]) x++;
      v[base + k] = x;
      if (x >= n && x - k >= m) { reached = d; break outer; }
    }
  }
  const found: Line[] = [];
  if (reached < 0) { // too different for a script that anybody reads
    for (let at = 0; at < n; at++) found.push({ kind: "gone", left: from + at, right: -1 });
    for (let at = 0; at < m; at++) found.push({ kind: "new", left: -1, right: from + at });
    return found;
  }
  let x = n, y = m;
  for (let d = reached; d >= 0; d--) {
    const past = trace[d], at = (k: number) => past[k + d + 1] ?? 0, k = x - y;
    const before = k === -d || (k !== d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
    const px = d ? at(before) : 0, py = d ? px - before : 0;
    while (x > px && y > py) { x--; y--; found.push({ kind: "same", left: from + x, right: from + y }); }
    if (d && x === px) { y--; found.push({ kind: "new", left: -1, right: from + y }); }
    else if (d) { x--; found.push({ kind: "gone", left: from + x, right: -1 }); }
  }
  return found.reverse();
}

export function Diff({ before, after, titles }: { before: string; after: string; titles: [string, string] }) {
  const [whole, show] = useState(false);
  const { script, left, right, changed } = useMemo(() => {
    const a = before.split("\n"), b = after.split("\n"), script = edits(a, b);
    return { script, left: coloured(before), right: coloured(after), changed: script.filter((line) => line.kind !== "same").length };
  }, [before, after]);
  const near = useMemo(() => {
    const close = new Uint8Array(script.length);
    script.forEach((line, place) => {
      if (line.kind !== "same") close.fill(1, Math.max(0, place - AROUND), place + AROUND + 1);
    });
    return close;
  }, [script]);
  if (!changed) return <p className="empty">The two are the same.</p>;
  return (
    <div className="diff">
      <div className="code-head">
        <span><b>{titles[0]}</b> → <b>{titles[1]}</b></span><span className="grow" />
        <span className="soft">{script.filter((line) => line.kind === "new").length} lines new, {script.filter((line) => line.kind === "gone").length} gone</span>
        <button type="button" className="quiet" aria-pressed={whole} onClick={() => show(!whole)}>{whole ? "Only changes" : "All lines"}</button>
      </div>
      <pre tabIndex={0} aria-label={`${titles[0]} and ${titles[1]} compared`}><code>
        {script.map((line, place) => {
          if (!whole && !near[place]) return near[place - 1] || place === 0 ? <span key={place} className="fold">⋯{"\n"}</span> : null;
          const of = line.kind === "new" ? right[line.right] : left[line.left];
          return (
            <span key={place} className={"line " + line.kind}>
              <span className="at">{line.left >= 0 ? line.left + 1 : ""}</span><span className="at">{line.right >= 0 ? line.right + 1 : ""}</span>
              <span className="sign">{line.kind === "new" ? "+" : line.kind === "gone" ? "−" : " "}</span><Pieces of={of ?? []} />{"\n"}
            </span>
          );
        })}
      </code></pre>
    </div>
  );
}
