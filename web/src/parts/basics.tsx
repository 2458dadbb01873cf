// Small parts that every view uses.
import { useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { words } from "../format";

const GOOD = new Set(["correct", "done", "right"]);
const BUSY = new Set(["running", "queued"]);
const WARN = new Set(["interrupted", "stopped", "unusable_task", "too_large", "too_slow"]);

export function Status({ of }: { of: string }) {
  const kind = GOOD.has(of) ? "correct" : BUSY.has(of) ? "busy" : WARN.has(of) ? "skipped" : "failed";
  return <span className={"badge " + kind}>{words(of)}</span>;
}

export function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {rows.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false).map(([name, value]) => (
        <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}

export function Copy({ text, title = "Copy" }: { text: string; title?: string }) {
  const [said, say] = useState("");
  const copy = () => navigator.clipboard?.writeText(text).then(() => say("Copied"), () => say("Not allowed"));
  return <button type="button" className="quiet" onClick={copy} onBlur={() => say("")}>{said || title}</button>;
}

export interface Tab { id: string; title: ReactNode; body: () => ReactNode }

/** Tabs with arrow keys, as the ARIA practices have them. */
export function Tabs({ tabs, chosen, choose, label }: { tabs: Tab[]; chosen: string; choose: (id: string) => void; label: string }) {
  const bar = useRef<HTMLDivElement>(null);
  const at = Math.max(0, tabs.findIndex((tab) => tab.id === chosen));
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = step ? (at + step + tabs.length) % tabs.length : event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : -1;
    if (next < 0) return;
    event.preventDefault();
    choose(tabs[next].id);
    (bar.current?.children[next] as HTMLElement).focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" aria-label={label} ref={bar} onKeyDown={keys}>
        {tabs.map((tab, place) => (
          <button key={tab.id} id={"tab-" + tab.id} type="button" role="tab" aria-selected={place === at} aria-controls={"panel-" + tab.id}
            tabIndex={place === at ? 0 : -1} onClick={() => choose(tab.id)}>{tab.title}</button>
        ))}
      </div>
      <div role="tabpanel" id={"panel-" + tabs[at].id} aria-labelledby={"tab-" + tabs[at].id}>{tabs[at].body()}</div>
    </>
  );
}

export function Spark({ values }: { values: number[] }) {
  if (values.length < 2) return <span className="spark" />;
  const low = Math.min(...values), high = Math.max(...values), span = high - low || 1;
  const points = values.map((value, place) => `${(place / (values.length - 1)) * 58 + 1},${17 - ((value - low) / span) * 15}`).join(" ");
  return <svg className="spark" viewBox="0 0 60 18" aria-hidden="true"><polyline points={points} /></svg>;
}

export function Wrong({ error }: { error: unknown }) {
  return error ? <p className="wrong" role="alert">{error instanceof Error ? error.message : String(error)}</p> : null;
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="empty">{children}</p>;
}
