// Two reports of the same tasks: what got better, what got worse beyond noise, and both curves on one chart.
import { useEffect, useMemo, useState } from "react";
import { get } from "../api";
import { times, words } from "../format";
import { Empty, Wrong } from "../parts/basics";
import { Against, FastP, useTips, type Pair } from "../report/charts";
import { correct, speed, type Figure, type Report } from "../report/data";
import { conditions, Tile } from "../report/view";
import { follow } from "../route";
import { useReport } from "./bench";

interface Change { key: string; kind: string; before: string; after: string; ratio: number | null }
interface Comparison { changes: Change[]; ratio: Figure | null; differences: string[] }
const KINDS: [string, string][] = [["lost", "no longer correct"], ["slower", "slower beyond noise"], ["gained", "now correct"], ["faster", "faster beyond noise"], ["same", "no difference"], ["only_before", "only in the first"], ["only_after", "only in the second"]];

export function Compared({ before, after }: { before: string; after: string }) {
  const [old, wrongOld] = useReport(before), [now, wrongNow] = useReport(after);
  const [found, set] = useState<Comparison | null>(null);
  const [error, fail] = useState<unknown>(null);
  const [kind, choose] = useState("");
  const [tell, tip] = useTips();
  useEffect(() => { get<Comparison>(`/reports/${before}/against/${after}`).then(set, fail); }, [before, after]);
  const pairs = useMemo(() => (old && now && found ? pairsOf(old, now, found) : []), [old, now, found]);
  const wrong = error ?? wrongOld ?? wrongNow;
  if (!old || !now || !found) return wrong ? <Wrong error={wrong} /> : <Empty>Loading …</Empty>;
  const count = (name: string) => found.changes.filter((change) => change.kind === name).length;
  const series = ([["before", "even", old], ["after", "blue", now]] as [string, string, Report][]).map(([name, color, report]) => ({
    name, color, of: report.records.length, values: report.records.filter(correct).map(speed).filter((value): value is number => !!value),
  })).filter((one) => one.values.length);
  const shown = found.changes.filter((change) => (kind ? change.kind === kind : change.kind !== "same"));
  return (
    <>
      <div className="title-row"><h1>Two reports compared</h1><div className="controls"><a className="button" href={`/bench/${after}/against/${before}`} onClick={follow}>Swap</a><a className="button" href="/bench" onClick={follow}>All reports</a></div></div>
      <section className="columns">
        {([["before", before, old], ["after", after, now]] as [string, string, Report][]).map(([name, id, report]) => <div key={name} className="card pad"><h2>{name}: <a href={"/bench/" + id} onClick={follow}>{report.title}</a></h2><p className="soft">{conditions(report)}</p></div>)}
      </section>
      {found.differences.map((text) => <p key={text} className="note">{text}: speeds are less than comparable.</p>)}
      <section className="tiles" aria-label="Summary">
        <Tile what="Speed now by speed then, geomean" value={times(found.ratio?.value)} more={found.ratio ? `[${times(found.ratio.low)}, ${times(found.ratio.high)}] over ${found.ratio.count} tasks timed in both` : "no task was timed in both"} />
        <Tile what="Got worse" value={String(count("lost") + count("slower"))} more={`${count("lost")} no longer correct, ${count("slower")} slower beyond noise`} />
        <Tile what="Got better" value={String(count("gained") + count("faster"))} more={`${count("gained")} now correct, ${count("faster")} faster beyond noise`} />
        <Tile what="The same" value={String(count("same"))} more={`${count("only_before")} only in the first, ${count("only_after")} only in the second`} />
      </section>
      <section className="charts" aria-label="Charts">
        <figure className="card"><figcaption><h2>fast_p</h2><p className="soft">Share of all tasks that are correct and more than p times as fast as eager</p></figcaption><FastP series={series} tell={tell} /></figure>
        <figure className="card"><figcaption><h2>Task by task</h2><p className="soft">Above the line: faster now</p></figcaption><Against pairs={pairs} tell={tell} reveal={(key) => choose(found.changes.find((change) => change.key === key)?.kind ?? "")} /></figure>
      </section>
      <section className="card tasks">
        <div className="controls chips" role="group" aria-label="Kinds of change"><h2>Changes</h2>{KINDS.filter(([name]) => count(name)).map(([name, title]) => (
          <button key={name} type="button" className="chip" aria-pressed={kind === name} onClick={() => choose(kind === name ? "" : name)}>{title} <b>{count(name)}</b></button>))}</div>
        <div className="scroll" tabIndex={0} role="region" aria-label="Changes">
          <table className="records"><thead><tr><th><span className="cell">Task</span></th><th><span className="cell">What changed</span></th><th className="number"><span className="cell">Before</span></th><th className="number"><span className="cell">After</span></th><th className="number"><span className="cell">Ratio</span></th></tr></thead>
            <tbody>{shown.map((change) => (
              <tr key={change.key} className="task"><td>{change.key}</td><td><span className={"badge " + ({ lost: "failed", slower: "failed", gained: "correct", faster: "correct" }[change.kind] ?? "plain")}>{words(change.kind)}</span></td>
                <td className="number">{words(change.before)}</td><td className="number">{words(change.after)}</td><td className="number">{times(change.ratio)}</td></tr>
            ))}</tbody></table>
          {!shown.length && <p className="empty">Nothing changed beyond noise.</p>}
        </div>
      </section>
      {tip}
    </>
  );
}

function pairsOf(old: Report, now: Report, found: Comparison): Pair[] {
  const then = new Map(old.records.map((record) => [record.key, speed(record)])), kinds = new Map(found.changes.map((change) => [change.key, change.kind]));
  return now.records.flatMap((record) => {
    const before = then.get(record.key), after = speed(record);
    return before && after ? [{ key: record.key, kind: kinds.get(record.key) ?? "same", before, after }] : [];
  });
}
