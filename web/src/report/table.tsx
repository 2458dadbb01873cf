// All records that match, sortable; a row opens its details.
import { useEffect, useRef } from "react";
import { milli, percent, times, words } from "../format";
import { COLUMNS, ordered, roof, speed, verb, versus, type Rec, type Texts, type View } from "./data";
import { Detail } from "./detail";

const SKIPPED = new Set(["unusable_task", "too_large", "too_slow", "no_kernel"]);

export function Table({ records, view, set, texts }: { records: Rec[]; view: View; set: (view: Partial<View>) => void; texts: (key: string) => Promise<Texts> }) {
  const sort = (name: string, number: boolean) => set({ sort: name, down: (view.sort === name ? !view.down : number) ? "1" : "" });
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Tasks">
      <table className="records">
        <thead><tr>{COLUMNS.map(({ name, title, number }) => (
          <th key={name} className={number ? "number" : ""} aria-sort={view.sort === name ? (view.down ? "descending" : "ascending") : "none"}><button type="button" data-sort={name} onClick={() => sort(name, number)}>{title}</button></th>
        ))}</tr></thead>
        <tbody>{ordered(records, view).map((record) => <Row key={record.key} record={record} open={view.open === record.key} turn={() => set({ open: view.open === record.key ? "" : record.key })} texts={texts} />)}</tbody>
      </table>
      {!records.length && <p className="empty">No task matches.</p>}
    </div>
  );
}

function Row({ record, open, turn, texts }: { record: Rec; open: boolean; turn: () => void; texts: (key: string) => Promise<Texts> }) {
  const line = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    const box = open && line.current?.getBoundingClientRect();
    if (box && (box.top < 0 || box.bottom > innerHeight)) line.current?.scrollIntoView({ block: "center" });
  }, [open]);
  const { timing } = record, cut = record.key.lastIndexOf("/") + 1;
  const kind = record.outcome === "correct" ? "correct" : SKIPPED.has(record.outcome) ? "skipped" : "failed";
  return (
    <>
      <tr ref={line} className={"task" + (open ? " open" : "")} data-key={record.key} onClick={turn}>
        <td><button type="button" className="plain" aria-expanded={open} onClick={(event) => { event.stopPropagation(); turn(); }}><span className="soft">{record.key.slice(0, cut)}</span>{record.key.slice(cut)}</button></td>
        <td>{record.family}</td>
        <td><span className={"badge " + kind}>{words(record.outcome)}</span>{record.track === "hybrid" && <span className="badge plain">hybrid</span>}{record.scaled.length > 0 && <span className="badge plain">scaled</span>}</td>
        {timing ? <><td className="number">{milli(timing.kernel_ms)}</td><td className="number">{milli(timing.eager_ms)}</td><td className="number">{times(speed(record))}<Range record={record} /></td>
          <td className="number">{times(versus(record))}</td><td className="number">{percent(roof(record))}</td></> : <td className="reason" colSpan={5}><div>{record.reason}</div></td>}
        <td className="number">{record.seconds.toFixed(1)}</td>
      </tr>
      {open && <tr className="detail"><td colSpan={COLUMNS.length}><Detail record={record} texts={texts} /></td></tr>}
    </>
  );
}

/** The interval on a logarithmic scale from 1/4 to 4, with a mark at 1. */
function Range({ record }: { record: Rec }) {
  const { speedup, speedup_low, speedup_high } = record.timing!;
  const width = 110, x = (value: number) => 3 + ((Math.min(1, Math.max(-1, Math.log(value) / Math.log(4))) + 1) / 2) * (width - 6);
  return (
    <svg className="range" viewBox={`0 0 ${width} 14`} aria-hidden="true">
      <line className="axis" x1="3" x2={width - 3} y1="7" y2="7" /><line className="axis" x1={x(1)} x2={x(1)} y1="1" y2="13" />
      <line className={"interval " + verb(record)} x1={x(speedup_low)} x2={x(speedup_high)} y1="7" y2="7" /><circle className={verb(record)} cx={x(speedup)} cy="7" r="3.6" />
    </svg>
  );
}
