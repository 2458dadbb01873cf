// All runs, what runs first. Pages are fetched as they come into sight; changes arrive by the stream.
import { useCallback, useEffect, useRef, useState } from "react";
import { get, type RunPage, type RunRow } from "../api";
import { ago, dollars, duration, times } from "../format";
import { useChanges } from "../live";
import { Empty, Spark, Status, Wrong } from "../parts/basics";
import { VirtualList } from "../parts/virtual";
import { follow, go } from "../route";

const PAGE = 100;

export interface Filter { search: string; status: string; dsl: string; target: string }
const fromAddress = (): Filter => {
  const asked = new URLSearchParams(location.search);
  return { search: asked.get("search") ?? "", status: asked.get("status") ?? "", dsl: asked.get("dsl") ?? "", target: asked.get("target") ?? "" };
};
const query = (filter: Filter) => new URLSearchParams(Object.entries(filter).filter(([, value]) => value)).toString();

export function RunsView() {
  const [filter, setFilter] = useState(fromAddress);
  const [about, setAbout] = useState<RunPage | null>(null);
  const [error, fail] = useState<unknown>(null);
  const [, draw] = useState(0);
  const rows = useRef(new Map<number, RunRow>());
  const asked = useRef(new Map<number, number>());
  const round = useRef(0);
  const sight = useRef<[number, number]>([0, 30]);
  const asking = query(filter);
  const search = useRef<HTMLInputElement>(null);

  const fetchPage = useCallback((page: number) => {
    const mine = round.current;
    asked.current.set(page, mine);
    get<RunPage>(`/runs?offset=${page * PAGE}&limit=${PAGE}${asking ? "&" + asking : ""}`).then((told) => {
      if (mine !== round.current) return;
      told.rows.forEach((row, place) => rows.current.set(page * PAGE + place, row));
      setAbout(told);
      fail(null);
    }, fail);
  }, [asking]);

  const need = useCallback((from: number, to: number) => {
    sight.current = [from, to];
    for (let page = Math.floor(from / PAGE); page * PAGE < to; page++) if (asked.current.get(page) !== round.current) fetchPage(page);
  }, [fetchPage]);

  const anew = useCallback((forget: boolean) => {
    round.current++;
    if (forget) rows.current.clear();
    const [from, to] = sight.current;
    need(from, Math.max(to, from + 1)); // an empty list is in nobody's sight, and may have got rows
  }, [need]);

  useEffect(() => {
    history.replaceState(null, "", "/" + (asking ? "?" + asking : ""));
    sight.current = [0, 30];
    const later = setTimeout(() => anew(true), 120);
    return () => clearTimeout(later);
  }, [asking, anew]);

  const soon = useRef<ReturnType<typeof setTimeout>>(undefined);
  useChanges((changed, all) => {
    const known = new Map([...rows.current].map(([place, row]) => [row.run, place]));
    const moved = !all || changed.some((row) => {
      const place = known.get(row.run), old = place === undefined ? undefined : rows.current.get(place);
      if (place !== undefined) rows.current.set(place, row);
      return !old || old.status !== row.status;
    });
    draw((count) => count + 1);
    if (moved) {
      clearTimeout(soon.current);
      soon.current = setTimeout(() => anew(false), 60);
    }
  });

  useEffect(() => {
    const keys = (event: globalThis.KeyboardEvent) => {
      if (event.key === "/" && !(event.target instanceof HTMLInputElement)) {
        event.preventDefault();
        search.current?.focus();
      }
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);

  const [narrow, setNarrow] = useState(innerWidth < 760);
  useEffect(() => {
    const look = () => setNarrow(innerWidth < 760);
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  }, []);

  const total = about?.total ?? 0;
  const choose = (name: keyof Filter) => (
    <select aria-label={name === "dsl" ? "Language" : name[0].toUpperCase() + name.slice(1)} value={filter[name]} onChange={(event) => setFilter({ ...filter, [name]: event.target.value })}>
      <option value="">{{ status: "any status", dsl: "any language", target: "any target", search: "" }[name]}</option>
      {Object.entries((about?.choices as Record<string, Record<string, number>> | undefined)?.[name] ?? {}).map(([value, count]) => <option key={value} value={value}>{value} ({count})</option>)}
    </select>
  );
  const now = Date.now() / 1000;
  return (
    <>
      <div className="title-row">
        <h1>Runs <span className="soft number">{about ? (total === about.all ? total.toLocaleString() : `${total.toLocaleString()} of ${about.all.toLocaleString()}`) : ""}</span></h1>
        <div className="controls" role="search">
          <input ref={search} type="search" aria-label="Search runs" placeholder="Search   /" value={filter.search} onChange={(event) => setFilter({ ...filter, search: event.target.value })}
            onKeyDown={(event) => { if (event.key === "ArrowDown") { event.preventDefault(); document.querySelector<HTMLElement>(".virtual a")?.focus(); } }} />
          {choose("status")}{choose("dsl")}{choose("target")}
          <a className="button primary" href="/new" onClick={follow}>New job</a>
        </div>
      </div>
      <Wrong error={error ?? (about?.trouble || null)} />
      {about && !total && <Empty>{about.all ? "No run matches." : <>No runs yet. Start one in the <a href="/new" onClick={follow}>workbench</a>, or with <code>kernelwright generate</code>.</>}</Empty>}
      <div className="card list">
        {!narrow && <div className="run-row head" aria-hidden="true"><span>Task</span><span>Status</span><span>Language</span><span>Target</span><span className="right">Best</span><span /><span className="right">Steps</span><span className="right">Time, budget</span><span className="right">Cost</span><span className="right">Started</span></div>}
        <VirtualList count={total} height={narrow ? 66 : 42} label="Runs" need={need} row={(at) => {
          const row = rows.current.get(at);
          return row ? <RunLine row={row} now={now} narrow={narrow} /> : <span className="run-row waiting" />;
        }} />
      </div>
    </>
  );
}

function RunLine({ row, now, narrow }: { row: RunRow; now: number; narrow: boolean }) {
  const budget = row.budget ? ` / ${duration(row.budget)}` : "";
  const cost = row.cost_usd ? dollars(row.cost_usd) : "";
  const limit = row.max_cost ? ` / ${dollars(row.max_cost)}` : "";
  if (narrow)
    return (
      <a className="run-row narrow" href={"/run/" + row.run} onClick={follow} data-run={row.run}>
        <span className="name"><b>{row.task}</b><Status of={row.status} /><span className="best number">{row.speedup ? times(row.speedup) : ""}</span></span>
        <span className="soft">{row.command} · {row.dsl} · {row.steps} steps · {duration(row.seconds)}{cost && ` · ${cost}`} · {ago(row.started, now)}</span>
      </a>
    );
  return (
    <a className="run-row" href={"/run/" + row.run} onClick={follow} data-run={row.run}>
      <span className="name"><b>{row.task || "–"}</b> <span className="soft">{row.command}{row.model && row.model !== "builtin" ? ` · ${row.model}` : ""}</span></span>
      <span><Status of={row.status} /></span><span>{row.dsl}</span><span className="soft">{row.target}</span>
      <span className="right number best">{row.speedup ? times(row.speedup) : ""}</span><span><Spark values={row.best} /></span>
      <span className="right number">{row.steps}</span><span className="right number">{duration(row.seconds)}<span className="soft">{budget}</span></span>
      <span className="right number">{cost}<span className="soft">{cost && limit}</span></span><span className="right soft">{ago(row.started, now)}</span>
    </a>
  );
}

export const openRun = (run: string) => go("/run/" + run);
