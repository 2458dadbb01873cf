// Benchmarks: the reports that there are, one of them, or two compared. Charts and table are those of report.html.
import { useCallback, useEffect, useState, type DragEvent } from "react";
import { get, post } from "../api";
import { times } from "../format";
import { Empty, Wrong } from "../parts/basics";
import type { Report, Texts } from "../report/data";
import "../report/report.css";
import { ReportView } from "../report/view";
import { follow, go } from "../route";
import { Compared } from "./compared";

interface Row { id: string; title: string; created: string; dsl: string; tasks: number; planned: number; correct: number; speedup: number | null; machine: string; brought: boolean }

export function BenchView({ report, against }: { report?: string; against?: string }) {
  if (report && against) return <Compared before={report} after={against} key={report + against} />;
  return report ? <One id={report} key={report} /> : <All />;
}

export const textsOf = (id: string) => (key: string) => get<Texts>(`/reports/${id}/texts?key=${encodeURIComponent(key)}`);

export function useReport(id: string): [Report | null, unknown] {
  const [report, set] = useState<Report | null>(null);
  const [error, fail] = useState<unknown>(null);
  useEffect(() => { get<Report>(`/reports/${encodeURIComponent(id)}`).then(set, fail); }, [id]);
  return [report, error];
}

function One({ id }: { id: string }) {
  const [report, error] = useReport(id);
  const texts = useCallback((key: string) => textsOf(id)(key), [id]);
  if (!report) return error ? <Wrong error={error} /> : <Empty>Loading …</Empty>;
  return <ReportView report={report} texts={texts} controls={<a className="button" href="/bench" onClick={follow}>All reports</a>} />;
}

function All() {
  const [rows, set] = useState<Row[] | null>(null);
  const [error, fail] = useState<unknown>(null);
  const [chosen, choose] = useState<string[]>([]);
  const [over, setOver] = useState(false);
  const load = useCallback(() => { get<Row[]>("/reports").then((told) => { set(told); fail(null); }, fail); }, []);
  useEffect(load, [load]);
  const bring = async (files: FileList | null) => {
    try {
      for (const file of files ?? []) await post("/reports", { text: await file.text() });
      load();
    } catch (caught) {
      fail(caught);
    }
  };
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void bring(event.dataTransfer.files);
  };
  const turn = (id: string) => choose(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id].slice(-2));
  // The older of the two is what the newer is held against.
  const pair = (rows ?? []).filter((row) => chosen.includes(row.id)).map((row) => row.id).reverse();
  return (
    <div className={over ? "over" : ""} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={dropped}>
      <div className="title-row"><h1>Benchmarks</h1>
        <div className="controls">
          <button type="button" className={pair.length === 2 ? "primary" : ""} disabled={pair.length !== 2} onClick={() => go(`/bench/${pair[0]}/against/${pair[1]}`)}>{pair.length === 2 ? "Compare the two" : "Compare: choose two"}</button>
          <label className="button">Open report.json<input type="file" accept=".json" multiple className="hidden" onChange={(event) => { void bring(event.target.files); event.target.value = ""; }} /></label>
        </div>
      </div>
      <Wrong error={error} />
      {!rows ? !error && <Empty>Loading …</Empty> : !rows.length ? <Empty>No report below the folders of this server. <code>kernelwright bench</code> writes one; <code>kernelwright serve --reports FOLDER</code> shows it; or drop a report.json here.</Empty>
        : <div className="card scroll pad" tabIndex={0} role="region" aria-label="Reports">
          <table className="grid reports"><thead><tr><th><span className="hidden">compare</span></th><th>Report</th><th>Language</th><th className="number">Correct</th><th className="number">Over eager</th><th>Machine</th><th>Created</th></tr></thead>
            <tbody>{rows.map((row) => (
              <tr key={row.id}><td><input type="checkbox" aria-label={`Compare ${row.title}, ${row.created}`} checked={chosen.includes(row.id)} onChange={() => turn(row.id)} /></td>
                <th scope="row"><a href={"/bench/" + row.id} onClick={follow}>{row.title}</a>{row.brought && <span className="badge plain">brought</span>}{row.tasks < row.planned && <span className="badge skipped">{row.tasks} of {row.planned}</span>}</th>
                <td>{row.dsl}</td><td className="number">{row.correct} / {row.tasks}</td><td className="number">{times(row.speedup)}</td><td>{row.machine}</td><td className="nowrap">{row.created}</td></tr>
            ))}</tbody></table>
        </div>}
    </div>
  );
}
