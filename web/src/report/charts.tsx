// The charts of reports: how many tasks are faster than p, how far from the roofline, how fast by family, and two reports against each other.
import { useState, type ReactNode } from "react";
import { logTicks, percent, plain, times } from "../format";
import { correct, describe, geomean, grouped, speed, verb, versus, type Rec } from "./data";

const SIDE = { left: 46, right: 16, top: 10, bottom: 34 };
const WIDTH = 620, HEIGHT = 270;
const Nothing = () => <p className="empty">Nothing was timed.</p>;

interface TipAt { x: number; y: number; text: string }

/** What is told of a dot while it is pointed at or has the focus; given once around all charts. */
export function useTips(): [(text: string) => object, ReactNode] {
  const [at, set] = useState<TipAt | null>(null);
  const tell = (text: string) => {
    const show = (event: { currentTarget: Element; clientX?: number; clientY?: number }) => {
      const box = event.currentTarget.getBoundingClientRect();
      set({ text, x: event.clientX || box.x + box.width / 2, y: event.clientY || box.y });
    };
    const hide = () => set(null);
    return { onMouseEnter: show, onMouseLeave: hide, onFocus: show, onBlur: hide, "aria-label": text.replaceAll("\n", ", ") };
  };
  const right = at && at.x > innerWidth - 340, low = at && at.y > innerHeight - 150;
  const tip = at && (
    <div id="tip" role="tooltip" style={{ [right ? "right" : "left"]: right ? innerWidth - at.x + 12 : at.x + 14, [low ? "bottom" : "top"]: low ? innerHeight - at.y + 10 : at.y + 18 }}>{at.text}</div>
  );
  return [tell, tip];
}

type Tell = (text: string) => object;
interface Shown { records: Rec[]; tell: Tell; reveal: (key: string) => void }

export function Legend({ of }: { of: [string, string, boolean?][] }) {
  return <div className="legend">{of.map(([color, text, line]) => <span key={text}><i className={(line ? "stroke " : "") + "tone-" + color} />{text}</span>)}</div>;
}

const opens = (key: string, reveal: (key: string) => void) => ({
  tabIndex: 0, role: "button", onClick: () => reveal(key), onKeyDown: (event: { key: string }) => { if (event.key === "Enter") reveal(key); },
});

function Grid({ x, y, ticks, share }: { x: (value: number) => number; y: (value: number) => number; ticks: number[]; share?: boolean }) {
  return (
    <>
      {(share ? [0, 0.25, 0.5, 0.75, 1] : ticks).map((tick) => <g key={tick}><line className="grid" x1={SIDE.left} x2={WIDTH - SIDE.right} y1={y(tick)} y2={y(tick)} />
        <text x={SIDE.left - 8} y={y(tick) + 4} textAnchor="end">{share ? percent(tick) : plain(tick)}</text></g>)}
      {ticks.map((tick) => <text key={tick} x={x(tick)} y={HEIGHT - 14} textAnchor="middle">{plain(tick) + (share ? "×" : "")}</text>)}
    </>
  );
}

export interface Series { name: string; color: string; values: number[]; of: number }

export function seriesOf(records: Rec[]): Series[] {
  const right = records.filter(correct);
  return [{ name: "over eager", color: "blue", of: speed }, { name: "over torch.compile", color: "purple", of: versus }]
    .map(({ name, color, of }) => ({ name, color, of: records.length, values: right.map(of).filter((value): value is number => !!value) })).filter((one) => one.values.length);
}

/** fast_p: the share of all tasks that are correct and more than p times as fast. */
export function FastP({ series, tell }: { series: Series[]; tell: Tell }) {
  if (!series.length) return <Nothing />;
  const low = 0.25, high = Math.max(4, Math.min(64, Math.max(...series.flatMap((one) => one.values)) * 1.1));
  const x = (p: number) => SIDE.left + (Math.log(p / low) / Math.log(high / low)) * (WIDTH - SIDE.left - SIDE.right);
  const y = (share: number) => SIDE.top + (1 - share) * (HEIGHT - SIDE.top - SIDE.bottom);
  const count = (one: Series, p: number) => one.values.filter((value) => value > p).length;
  const steps = Array.from({ length: 241 }, (_, step) => low * (high / low) ** (step / 240));
  return (
    <>
      <Legend of={series.map((one) => [one.color, `${one.name}: fast₁ ${percent(count(one, 1) / one.of)}`, true])} />
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label="Share of tasks faster than p">
        <Grid x={x} y={y} ticks={logTicks(low, high)} share />
        <line className="one" x1={x(1)} x2={x(1)} y1={SIDE.top} y2={HEIGHT - SIDE.bottom} />
        {series.map((one) => <g key={one.name} className={"tone-" + one.color}>
          <polyline className="curve" points={steps.map((p) => `${x(p).toFixed(1)},${y(count(one, p) / one.of).toFixed(1)}`).join(" ")} />
          {[1, 1.5, 2].map((p) => <circle key={p} className="dot tone" cx={x(p)} cy={y(count(one, p) / one.of)} r="4.5" tabIndex={0} role="img" {...tell(`fast_${plain(p)} ${one.name}: ${percent(count(one, p) / one.of)}\n${count(one, p)} of ${one.of} tasks`)} />)}
        </g>)}
      </svg>
    </>
  );
}

export function Roofs({ records, tell, reveal }: Shown) {
  const shown = records.filter((record) => (record.timing?.roofline_ms ?? 0) > 0);
  if (!shown.length) return <Nothing />;
  const all = shown.flatMap(({ timing }) => [timing!.roofline_ms!, timing!.kernel_ms]);
  const low = Math.min(...all) / 1.4, high = Math.max(...all) * 1.4;
  const scale = (value: number, from: number, to: number) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
  const x = (value: number) => scale(value, SIDE.left, WIDTH - SIDE.right), y = (value: number) => scale(value, HEIGHT - SIDE.bottom, SIDE.top);
  return (
    <>
      <Legend of={[["blue", "faster than eager"], ["even", "no difference"], ["bad", "slower"], ["good", "the roofline", true], ["faint", "a tenth of it", true]]} />
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label="Kernel time against roofline time">
        <Grid x={x} y={y} ticks={logTicks(low, high)} />
        <text x={WIDTH - SIDE.right} y={HEIGHT} textAnchor="end">roofline, ms</text><text x={SIDE.left + 6} y={SIDE.top + 8}>kernel, ms</text>
        <line className="roofline" x1={x(low)} y1={y(low)} x2={x(high)} y2={y(high)} />
        {high > low * 10 && <line className="one" x1={x(low)} y1={y(low * 10)} x2={x(high / 10)} y2={y(high)} />}
        {shown.map((record) => <circle key={record.key} className={"dot " + verb(record)} cx={x(record.timing!.roofline_ms!)} cy={y(record.timing!.kernel_ms)} r="4.2" {...opens(record.key, reveal)} {...tell(describe(record))} />)}
      </svg>
    </>
  );
}

export function Families({ records, tell, reveal }: Shown) {
  const rows = [...grouped(records, (record) => record.family)].map(([family, some]) => ({ family, some, timed: some.filter(speed), mean: geomean(some), right: some.filter(correct).length }))
    .sort((a, b) => (b.mean ?? 0) - (a.mean ?? 0));
  const speeds = rows.flatMap((row) => row.timed.map((record) => speed(record)!));
  if (!speeds.length) return <Nothing />;
  const width = 1280, line = 27, height = rows.length * line + 40, left = 150, right = 150;
  const low = Math.min(0.5, ...speeds) / 1.1, high = Math.max(2, ...speeds) * 1.1;
  const x = (value: number) => left + (Math.log(value / low) / Math.log(high / low)) * (width - left - right);
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Speedup by family">
      <svg className="families" viewBox={`0 0 ${width} ${height}`} role="group" aria-label="Geometric mean of speedups by family">
        {logTicks(low, high).map((tick) => <g key={tick}><line className="grid" x1={x(tick)} x2={x(tick)} y1="4" y2={height - 30} /><text x={x(tick)} y={height - 12} textAnchor="middle">{plain(tick)}×</text></g>)}
        {rows.map((row, place) => {
          const middle = 4 + place * line + line / 2;
          return (
            <g key={row.family}>
              <text className="strong" x={left - 12} y={middle + 4} textAnchor="end">{row.family}</text>
              {row.mean && <rect className={"mean " + (row.mean >= 1 ? "faster" : "slower")} x={Math.min(x(1), x(row.mean))} y={middle - 8} height="16" rx="3" width={Math.max(2, Math.abs(x(row.mean) - x(1)))} />}
              {row.timed.map((record) => <circle key={record.key} className={"dot " + verb(record)} cx={x(speed(record)!)} cy={middle} r="4" {...opens(record.key, reveal)} {...tell(describe(record))} />)}
              <text className="strong" x={width - right + 14} y={middle + 4}>{times(row.mean)}</text><text x={width - right + 66} y={middle + 4}>{row.right}/{row.some.length} correct</text>
            </g>
          );
        })}
        <line className="one" x1={x(1)} x2={x(1)} y1="0" y2={height - 30} />
      </svg>
    </div>
  );
}

export interface Pair { key: string; kind: string; before: number; after: number }
const TONES: Record<string, string> = { faster: "faster", gained: "faster", slower: "slower", lost: "slower" };

/** Each task that both reports timed: its speed then and now; on the line nothing changed. */
export function Against({ pairs, tell, reveal }: { pairs: Pair[]; tell: Tell; reveal: (key: string) => void }) {
  if (!pairs.length) return <p className="empty">No task was timed in both.</p>;
  const all = pairs.flatMap((pair) => [pair.before, pair.after, 1]);
  const low = Math.min(...all) / 1.2, high = Math.max(...all) * 1.2;
  const scale = (value: number, from: number, to: number) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
  const x = (value: number) => scale(value, SIDE.left, WIDTH - SIDE.right), y = (value: number) => scale(value, HEIGHT - SIDE.bottom, SIDE.top);
  return (
    <>
      <Legend of={[["blue", "faster beyond noise"], ["even", "no difference"], ["bad", "slower beyond noise"]]} />
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label="Speed over eager in the first report against the second">
        <Grid x={x} y={y} ticks={logTicks(low, high)} />
        <text x={WIDTH - SIDE.right} y={HEIGHT} textAnchor="end">before, times eager</text><text x={SIDE.left + 6} y={SIDE.top + 8}>after</text>
        <line className="one" x1={x(low)} y1={y(low)} x2={x(high)} y2={y(high)} />
        {pairs.map((pair) => <circle key={pair.key} className={"dot " + (TONES[pair.kind] ?? "even")} cx={x(pair.before)} cy={y(pair.after)} r="4.2" {...opens(pair.key, reveal)}
          {...tell(`${pair.key}\nwas ${times(pair.before)}, is ${times(pair.after)}`)} />)}
      </svg>
    </>
  );
}
