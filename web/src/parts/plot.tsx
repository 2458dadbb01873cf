// uPlot in React: data in, a chart as wide as its place out, drawn anew when theme or width change.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { CurvePoint, Variant } from "../api";
import { duration, plain } from "../format";

const HEIGHT = 230;
const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function Plot({ make, data, label }: { make: () => Omit<uPlot.Options, "width" | "height">; data: uPlot.AlignedData; label: string }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = host.current!;
    let chart: uPlot | null = null;
    const draw = () => {
      chart?.destroy();
      place.replaceChildren();
      chart = new uPlot({ ...make(), width: Math.max(200, place.clientWidth), height: HEIGHT }, data, place);
    };
    draw();
    const sizes = new ResizeObserver(() => chart?.setSize({ width: Math.max(200, place.clientWidth), height: HEIGHT }));
    sizes.observe(place);
    const themes = new MutationObserver(draw);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", draw);
    return () => {
      sizes.disconnect();
      themes.disconnect();
      system.removeEventListener("change", draw);
      chart?.destroy();
    };
  }, [data, make]);
  return <div className="plot" ref={host} role="img" aria-label={label} />;
}

function axes(): uPlot.Axis[] {
  const common = { stroke: color("--soft"), grid: { stroke: color("--grid"), width: 1 }, ticks: { show: false }, font: "11.5px system-ui" };
  return [
    { ...common, values: (_: uPlot, values: number[]) => values.map((value) => duration(value)), space: 80 },
    { ...common, values: (_: uPlot, values: number[]) => values.map((value) => plain(value) + "×"), size: 56 },
  ];
}

const scales = { x: { time: false }, y: { range: (_: uPlot, low: number, high: number): [number, number] => [Math.max(0, Math.min(low, 1) * 0.95), Math.max(high * 1.06, 1.1)] } };

export function BestOverTime({ points, seconds }: { points: CurvePoint[]; seconds: number }) {
  if (!points.length) return <p className="empty">No correct kernel was timed yet.</p>;
  const end = Math.max(seconds, points[points.length - 1].seconds);
  const at = [...points.map((point) => Math.max(0, point.seconds)), end];
  const best = [...points.map((point) => point.speedup), points[points.length - 1].speedup];
  const make = () => ({
    scales, axes: axes(), legend: { show: false }, cursor: { points: { size: 7 } },
    series: [{}, { label: "best", stroke: color("--blue"), width: 2, paths: uPlot.paths.stepped!({ align: 1 }), points: { show: true, size: 6, fill: color("--card") }, fill: color("--mark") }],
  });
  const last = best[best.length - 1];
  return <Plot make={make} data={[at, best] as uPlot.AlignedData} label={`Best speed over eager over time: ${points.length} improvements, ${plain(last)} times at the end`} />;
}

export function Population({ variants }: { variants: Variant[] }) {
  const islands = [...new Set(variants.map((one) => one.island ?? -1))].sort((a, b) => a - b);
  const sorted = [...variants].sort((a, b) => a.seconds - b.seconds);
  const at = sorted.map((one) => Math.max(0, one.seconds));
  const data = [at, ...islands.map((island) => sorted.map((one) => ((one.island ?? -1) === island ? one.speedup : null)))];
  const make = () => ({
    scales, axes: axes(), legend: { show: false },
    series: [{}, ...islands.map((island, place) => ({
      label: island < 0 ? "not told" : `island ${island + 1}`, stroke: color(`--island-${place % 6}`), paths: () => null,
      points: { show: true, size: 6, fill: color(`--island-${place % 6}`) },
    }))],
  });
  return (
    <>
      <div className="legend">
        {islands.map((island, place) => <span key={island}><i data-island={place % 6} />{island < 0 ? "all" : `island ${island + 1}`}: {variants.filter((one) => (one.island ?? -1) === island).length}</span>)}
      </div>
      <Plot make={make} data={data as uPlot.AlignedData} label={`${variants.length} variants over time, by island`} />
    </>
  );
}
