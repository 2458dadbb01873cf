// A verdict: what became of a kernel, how fast it is beside others and the roofline, or where it is wrong. Fields that this page does not
// know are shown as they are.
import type { Facts as Dict, Heat, Launch, Mismatch, Timing, Verdict } from "../api";
import { milli, percent, times, words } from "../format";
import { Code } from "./code";
import { Facts, Status } from "./basics";

const KNOWN = new Set(("status reason task task_hash kernel_hash dsl target execution sandbox track library_calls trials timing mismatch build " +
  "compiled_for task_flags warnings stderr_tail seconds phases").split(" "));

export function VerdictView({ verdict }: { verdict: Verdict }) {
  const { timing, mismatch, build, trials } = verdict;
  const rest = Object.entries(verdict).filter(([name, value]) => !KNOWN.has(name) && value !== null && value !== "" && !(Array.isArray(value) && !value.length));
  return (
    <section className="verdict" aria-label="Verdict">
      <p className="verdict-head"><Status of={verdict.status} /> <span>{verdict.reason}</span></p>
      {timing && <Race timing={timing} />}
      {mismatch && <Where mismatch={mismatch} />}
      {build && <Code title={build.message} text={build.excerpt || build.message} />}
      {verdict.compiled_for && <Compiled targets={verdict.compiled_for} />}
      {verdict.compiled_for && <Profiles targets={verdict.compiled_for} />}
      {[...(verdict.task_flags ?? []), ...(verdict.warnings ?? [])].map((text) => <p key={text} className="note">{text}</p>)}
      {verdict.sandbox === "none" && <p className="wrong">Not sandboxed: this kernel ran with the rights of this user.</p>}
      {verdict.stderr_tail && verdict.status !== "correct" && <Code title="it printed" text={verdict.stderr_tail} />}
      <Facts rows={[
        ["executed", `${verdict.execution} on ${verdict.target}, ${verdict.dsl}, track ${verdict.track}, sandbox ${verdict.sandbox}`],
        ["library calls", verdict.library_calls?.join(", ")],
        ["trials", trials && trials.seeds ? `${trials.seeds} seeds; ${trials.distributions.join(", ")}; ${trials.shapes} shapes; ${trials.noncontiguous} not contiguous; reference ${trials.reference}` : ""],
        ["took", verdict.seconds ? `${verdict.seconds.toFixed(1)} s` + (Object.keys(verdict.phases ?? {}).length ? ": " + Object.entries(verdict.phases).map(([name, value]) => `${name} ${value.toFixed(1)}`).join(", ") : "") : ""],
        ...rest.map(([name, value]): [string, string] => [words(name), typeof value === "object" ? JSON.stringify(value) : String(value)]),
      ]} />
    </section>
  );
}

/** Everybody's time on one logarithmic axis, with the roofline as a line: left of it nothing can be. */
function Race({ timing }: { timing: Timing }) {
  const rows: [string, number, string, string][] = [["kernel", timing.kernel_ms, "mine", ""]];
  rows.push(["PyTorch eager", timing.eager_ms, "", `${times(timing.speedup)}  [${times(timing.speedup_low)}, ${times(timing.speedup_high)}]`]);
  if (timing.compile_ms) rows.push(["torch.compile", timing.compile_ms, "", `${times(timing.speedup_vs_compile)}  [${times(timing.speedup_vs_compile_low)}, ${times(timing.speedup_vs_compile_high)}]`]);
  for (const rival of timing.rivals ?? []) rows.push([rival.name, rival.ms, "", `${times(rival.speedup)}  [${times(rival.speedup_low)}, ${times(rival.speedup_high)}]`]);
  const all = [...rows.map(([, ms]) => ms), ...(timing.roofline_ms ? [timing.roofline_ms] : [])];
  const low = Math.min(...all) / 1.5, high = Math.max(...all) * 1.1;
  const x = (ms: number) => 100 * (Math.log(ms / low) / Math.log(high / low));
  const roof = timing.roofline_ms ? x(timing.roofline_ms) : null;
  return (
    <div className="race">
      <table>
        <thead><tr><th>contender</th><th className="number">ms</th><th aria-label="time on a logarithmic scale" className="wide" /><th>the kernel is faster by</th></tr></thead>
        <tbody>
          {rows.map(([name, ms, kind, said]) => (
            <tr key={name}>
              <th scope="row">{name}</th><td className="number">{milli(ms)}</td>
              <td className="wide"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                <rect className={"bar " + kind} x="0" y="1.5" width={x(ms)} height="7" />
                {roof !== null && <line className="roof" x1={roof} x2={roof} y1="0" y2="10" />}
              </svg></td>
              <td className="number">{said}</td>
            </tr>
          ))}
          {timing.roofline_ms && <tr><th scope="row">roofline</th><td className="number">{milli(timing.roofline_ms)}</td><td className="wide soft">{timing.bound ? `bound by ${timing.bound}` : ""}</td>
            <td>{percent(timing.roofline_fraction)} of it reached</td></tr>}
        </tbody>
      </table>
      <p className="soft">{timing.rounds} rounds, {timing.threads} threads, {timing.cache} cache; eager against itself ±{(100 * timing.noise).toFixed(1)} %
        {timing.bandwidth_gb_s ? `; memory gave ${timing.bandwidth_gb_s.toFixed(0)} GB/s` : ""}
        {timing.kernel_mb ? `; memory of a call ${timing.kernel_mb.toFixed(1)} MB, eager ${timing.eager_mb?.toFixed(1)} MB` : ""}</p>
    </div>
  );
}

function Where({ mismatch }: { mismatch: Mismatch }) {
  return (
    <div className="where">
      <p><b>{mismatch.output}</b>: {mismatch.wrong.toLocaleString()} of {mismatch.total.toLocaleString()} elements wrong ({percent(mismatch.total ? mismatch.wrong / mismatch.total : null)}) – {mismatch.region}
        {mismatch.trial ? `, on ${mismatch.trial}` : ""}</p>
      {mismatch.heat && <HeatMap heat={mismatch.heat} />}
      {mismatch.samples?.length > 0 && <ul className="samples">{mismatch.samples.map((text) => <li key={text}><code>{text}</code></li>)}</ul>}
      {mismatch.worst_error != null && <p className="soft">worst error {mismatch.worst_error.toPrecision(3)}, allowed {mismatch.bound?.toPrecision(3)}</p>}
    </div>
  );
}

/** Where the error lies: each cell is a block of the output; the darker, the more of it is wrong. */
export function HeatMap({ heat }: { heat: Heat }) {
  const { rows, columns, share, shape, axes } = heat;
  const size = Math.max(6, Math.min(22, Math.floor(560 / Math.max(rows, columns))));
  const high = shape[axes[0]] ?? 1, wide = shape[axes[axes.length - 1]] ?? 1;
  const range = (at: number, parts: number, length: number) => {
    const from = Math.floor((at * length) / parts), to = Math.floor(((at + 1) * length) / parts) - 1;
    return from >= to ? `${from}` : `${from}–${to}`;
  };
  const cells = share.map((part, place) => ({ part, row: Math.floor(place / columns), column: place % columns }));
  return (
    <figure className="heat">
      <svg width={columns * size} height={rows * size} viewBox={`0 0 ${columns * size} ${rows * size}`} role="img" aria-label={`Where the error lies, ${rows} by ${columns} blocks of an output of ${shape.join(" × ")}`}>
        <rect className="heat-back" width={columns * size} height={rows * size} />
        {cells.filter((cell) => cell.part > 0).map((cell) => (
          <rect key={cell.row * columns + cell.column} className="heat-cell" x={cell.column * size} y={cell.row * size} width={size} height={size} fillOpacity={0.15 + 0.85 * cell.part}>
            <title>{`dim ${axes[0]}: ${range(cell.row, rows, high)}, dim ${axes[axes.length - 1]}: ${range(cell.column, columns, wide)} – ${percent(cell.part)} wrong`}</title>
          </rect>
        ))}
      </svg>
      <figcaption className="soft">output {shape.join(" × ")}; {axes.length > 1 ? `down dim ${axes[0]}, across dim ${axes[1]}` : `dim ${axes[0]}, in reading order`}{shape.length > axes.length ? ", over all others" : ""}</figcaption>
    </figure>
  );
}

function Compiled({ targets }: { targets: Record<string, Dict> }) {
  const names = ["stage", "registers", "shared_memory", "spills", "occupancy", "limiter", "predicted_ms", "compiler"];
  const shown = names.filter((name) => Object.values(targets).some((one) => one[name] !== null && one[name] !== undefined && one[name] !== ""));
  const cell = (name: string, value: unknown) => value === null || value === undefined ? "–" : name === "occupancy" ? percent(value as number) : name === "predicted_ms" ? milli(value as number) : String(value);
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Compiled for">
      <table className="grid"><thead><tr><th>compiled for</th>{shown.map((name) => <th key={name}>{words(name)}</th>)}</tr></thead>
        <tbody>{Object.entries(targets).map(([target, figures]) => <tr key={target}><th scope="row">{target}</th>{shown.map((name) => <td key={name} className="number">{cell(name, figures[name])}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

/** What was counted while the compiled code ran here, launch by launch: what bounds it, what to change, its hottest lines. */
function Profiles({ targets }: { targets: Record<string, Dict> }) {
  const found = Object.entries(targets).flatMap(([target, figures]) => ((figures.launches ?? []) as Launch[]).map((launch): [string, Launch] => [target, launch]));
  return found.map(([target, launch]) => (
    <details key={target + launch.name + launch.grid.join()} className="launch" open={found.length === 1}>
      <summary><b>{launch.name}</b> on {target}: {milli(launch.predicted.ms)} ms predicted (±{percent(launch.predicted.error)}), bound by {launch.predicted.bound}{launch.times > 1 ? `, ${launch.times} times` : ""}</summary>
      {launch.advice.length > 0 && <ul>{launch.advice.map((line) => <li key={line}>{line}</li>)}</ul>}
      <div className="scroll" tabIndex={0} role="region" aria-label={`Profile of ${launch.name} by source line`}>
        <table className="grid"><thead><tr><th>line</th><th className="number">share</th><th>source</th><th className="number">instructions</th><th className="number">sectors a request</th><th className="number">bank passes</th></tr></thead>
          <tbody>{launch.lines.map((one) => (
            <tr key={one.file + one.line}><th scope="row" className="number">{one.line}</th><td className="number">{percent(one.share)}</td><td><code>{one.source.trim()}</code></td>
              <td className="number">{Math.round(one.instructions).toLocaleString()}</td><td className="number">{atBest(one.sectors_per_request, one.least_sectors)}</td><td className="number">{atBest(one.bank_passes_per_request, one.least_passes)}</td></tr>
          ))}</tbody></table>
      </div>
    </details>
  ));
}

const atBest = (now: number | null, least: number | null): string => (now ? `${+now.toPrecision(3)}${least ? ` (${+least.toPrecision(3)} at best)` : ""}` : "");
