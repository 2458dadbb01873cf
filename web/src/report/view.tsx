// A report: tiles, charts and the table of its tasks, all of what the filter leaves. The same in report.html and in the page of `serve`.
import { useEffect, useMemo, useState, type ReactNode } from "react";
import { mean, percent, times, words } from "../format";
import { Families, FastP, Roofs, seriesOf, useTips } from "./charts";
import { correct, grouped, matching, NOTHING, recall, remember, roof, speed, verb, versus, where, type Rec, type Report, type Texts, type View } from "./data";
import { Table } from "./table";

export function ReportView({ report, texts, controls }: { report: Report; texts: (key: string) => Promise<Texts>; controls?: ReactNode }) {
  const [view, setView] = useState(recall);
  const [tell, tip] = useTips();
  const set = (part: Partial<View>) => setView({ ...view, ...part });
  useEffect(() => remember(view), [view]);
  const records = useMemo(() => matching(report.records, view), [report, view]);
  const series = useMemo(() => seriesOf(records), [records]);
  const reveal = (key: string) => setView(matching(report.records, view).some((record) => record.key === key) ? { ...view, open: key } : { ...NOTHING, sort: view.sort, down: view.down, open: key });
  const timed = report.records.some((record) => record.timing);
  return (
    <div className="report">
      <div className="title-row"><div><h1>{report.title}</h1><p className="soft">{conditions(report)}</p></div>{controls}</div>
      {notes(report).map((text) => <p key={text} className="note">{text}</p>)}
      <Tiles report={report} records={records} />
      {timed && <section className="charts" aria-label="Charts">
        <figure className="card"><figcaption><h2>fast_p</h2><p className="soft">Share of all tasks that are correct and more than p times as fast</p></figcaption><div id="curve"><FastP series={series} tell={tell} /></div></figure>
        <figure className="card"><figcaption><h2>Distance to the roofline</h2><p className="soft">Each kernel's time against the least that this machine allows</p></figcaption><div id="scatter"><Roofs records={records} tell={tell} reveal={reveal} /></div></figure>
        <figure className="card wide"><figcaption><h2>Speedup by family</h2><p className="soft">Bar: geometric mean over eager. Dots: single tasks</p></figcaption><div id="families"><Families records={records} tell={tell} reveal={reveal} /></div></figure>
      </section>}
      <section className="card tasks">
        <Filters report={report} view={view} set={set} count={records.length} />
        <Table records={records} view={view} set={set} texts={texts} />
      </section>
      <p className="soft foot">{foot(report)}</p>
      {tip}
    </div>
  );
}

export function conditions({ created, options, machines }: Report): string {
  const machine = machines[machines.length - 1];
  return `${created} · track ${options.track} · effort ${options.effort} · against ${options.contenders.join(", ")}` +
    (machine ? ` · ${machine.cpu}, ${machine.threads} threads · torch ${machine.torch} · ${machine.compiler} · kernelwright ${machine.kernelwright} ${machine.commit}` : "");
}

function notes({ options, records, planned }: Report): string[] {
  const found = [];
  if (options.scale < 1) found.push(`Sizes were scaled by ${options.scale}: speeds are not comparable with those at full size.`);
  if (records.length < planned) found.push(`Unfinished: ${records.length} of ${planned} tasks.`);
  if (options.kernels) found.push(`The kernels were not made here; they come from ${options.kernels}.`);
  return found;
}

function foot({ machines }: Report): string {
  const machine = machines[machines.length - 1];
  return "Speedups are medians of paired rounds with 95 % intervals; means over tasks are geometric. The denominator of every share is all tasks." +
    (machine ? ` ${machine.system}, Python ${machine.python}, ${machine.memory_gb} GB.` : "");
}

function Filters({ report, view, set, count }: { report: Report; view: View; set: (view: Partial<View>) => void; count: number }) {
  const counted = (by: (record: Rec) => string): [string, string][] => [...grouped(report.records, by)].map(([word, some]) => [word, `${words(word)} (${some.length})`]);
  const verbs: [string, string][] = report.records.some(verb) ? [["faster", "faster beyond doubt"], ["even", "no difference"], ["slower", "slower beyond doubt"]] : [];
  const pick = (name: "level" | "family" | "outcome", title: string, choices: [string, string][]) => (
    <select id={name} aria-label={name} value={view[name]} onChange={(event) => set({ [name]: event.currentTarget.value })}>
      <option value="">{title}</option>{choices.map(([word, text]) => <option key={word} value={word}>{text}</option>)}
    </select>
  );
  const clear = { search: "", level: "", family: "", outcome: "" };
  return (
    <>
      <div className="controls">
        <h2>Tasks <span className="soft number">{count === report.records.length ? count : `${count} of ${report.records.length}`}</span></h2>
        <input id="search" type="search" placeholder="Filter by name or reason" aria-label="Filter by name or reason" value={view.search} onChange={(event) => set({ search: event.currentTarget.value })} />
        {pick("level", "All levels", counted(where))}{pick("family", "All families", counted((record) => record.family))}{pick("outcome", "All outcomes", [...counted((record) => record.outcome), ...verbs])}
        {(view.search || view.level || view.family || view.outcome) && <button id="clear" type="button" onClick={() => set(clear)}>Clear</button>}
      </div>
      {report.failures.length > 0 && <div className="controls chips" role="group" aria-label="Failures by reason">{report.failures.map(({ outcome, count }) => (
        <button key={outcome} type="button" className="chip" aria-pressed={view.outcome === outcome} data-outcome={outcome} onClick={() => set({ outcome: view.outcome === outcome ? "" : outcome })}>{words(outcome)} <b>{count}</b></button>
      ))}</div>}
    </>
  );
}

export function Tile({ what, value, more, share }: { what: string; value: string; more: string; share?: number }) {
  return (
    <div className="tile"><div className="what">{what}</div><div className="value">{value}</div>
      {share !== undefined && <div className="meter"><i style={{ width: `${100 * Math.min(1, share)}%` }} /></div>}<div className="more">{more}</div></div>
  );
}

/** Over all tasks the report's own figures with their intervals; over a selection what can be computed here. */
function Tiles({ report, records }: { report: Report; records: Rec[] }) {
  const whole = records.length === report.records.length, { summary } = report;
  const right = records.filter(correct), some = (of: (record: Rec) => number | null) => right.map(of).filter((value): value is number => !!value);
  const pace = [{ title: "Over eager", values: some(speed), figures: summary.over_eager }, { title: "Over compile", values: some(versus), figures: summary.over_compile }].filter(({ values }) => values.length);
  const speeds = some(speed), fast = speeds.filter((value) => value > 1).length / (records.length || 1);
  const roofs = some(roof).sort((a, b) => a - b), took = records.map((record) => record.seconds).sort((a, b) => a - b);
  const cost = records.reduce((sum, record) => sum + record.cost_usd, 0), share = records.length ? right.length / records.length : 0;
  return (
    <section className="tiles" aria-label="Summary">
      <Tile what="Correct" value={`${right.length} / ${records.length}`} more={percent(share)} share={share} />
      {pace.map(({ title, values, figures }) => {
        const exact = whole && figures?.geomean_correct;
        return <Tile key={title} what={title + ", geomean"} value={times(mean(values))}
          more={(exact ? `[${times(exact.low)}, ${times(exact.high)}] over ${exact.count}; ` : `over ${values.length}; `) + `failures as 1×: ${times(mean([...values, ...Array<number>(records.length - values.length).fill(1)]))}`} />;
      })}
      {speeds.length > 0 && <Tile what="Faster than eager" value={percent(fast)} share={fast} more={`beyond doubt: ${right.filter((record) => verb(record) === "faster").length} faster, ${right.filter((record) => verb(record) === "slower").length} slower`} />}
      {roofs.length > 0 && <Tile what="Of the roofline, median" value={percent(roofs[roofs.length >> 1])} share={roofs[roofs.length >> 1]} more={`best ${percent(roofs[roofs.length - 1])}, worst ${percent(roofs[0])}`} />}
      {took.length > 0 && <Tile what="Time to a kernel, median" value={took[took.length >> 1].toFixed(1) + " s"} more={`${(took.reduce((a, b) => a + b, 0) / 60).toFixed(0)} min in all` + (cost ? `, $${cost.toFixed(2)}` : ", no model")} />}
    </section>
  );
}
