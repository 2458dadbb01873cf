// What this machine can run and what is missing, with the command that adds it: `kernelwright doctor`, looked at now.
import { useCallback, useEffect, useState } from "react";
import { question } from "../api";
import { Copy, Empty, Facts, Wrong } from "../parts/basics";

interface Way { language: string; way: string; state: string; detail: string; add: string }
interface Machine {
  ways: Way[]; compilers: Record<string, string | null>; packages: Record<string, string | null>; gpus: string[]; models: string; search: string; lifting: string; sandbox: string; targets: string[];
  cpu: { model: string; cores: number; features: string[]; caches: Record<string, number>; bandwidth_gb_s: number; read_gb_s: number; write_gb_s: number; peak_gflop_s: number; call_us: number; wake_us: number; figures: string; level_gb_s: Record<string, number> };
}

const size = (count: number) => (count >= 1 << 20 ? `${count >> 20} MiB` : `${count >> 10} KiB`);

export function MachineView() {
  const [machine, set] = useState<Machine | null>(null);
  const [error, fail] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const look = useCallback(() => {
    setBusy(true);
    question<Machine>("machine").then((told) => { set(told); fail(null); }, fail).finally(() => setBusy(false));
  }, []);
  useEffect(look, [look]);
  return (
    <>
      <div className="title-row"><h1>This machine</h1><div className="controls"><button type="button" disabled={busy} onClick={look}>{busy ? "Looking …" : "Look again"}</button></div></div>
      <Wrong error={error} />
      {!machine && !error && <Empty>Compilers are asked for their versions, and a worker is started to see its sandbox …</Empty>}
      {machine && <>
        <section className="card pad scroll" tabIndex={0} aria-label="Languages">
          <table className="grid"><thead><tr><th>language</th><th>runs by</th><th>state</th><th>with</th><th>to add it</th></tr></thead>
            <tbody>{machine.ways.map((way) => (
              <tr key={way.language + way.way}><th scope="row">{way.language}</th><td>{way.way}</td><td><span className={"badge " + (way.state === "ready" ? "correct" : "skipped")}>{way.state}</span></td><td className="wrap">{way.detail}</td>
                <td>{way.add && <span className="add"><code>{way.add}</code> <Copy text={way.add} /></span>}</td></tr>))}</tbody></table>
        </section>
        <section className="card pad"><Facts rows={[
          ["CPU", `${machine.cpu.model}, ${machine.cpu.cores} cores, ${machine.cpu.features.join(" ")}`],
          ["caches", Object.entries(machine.cpu.caches).map(([name, bytes]) => `${name} ${size(bytes)}${machine.cpu.level_gb_s[name] ? ` at ${machine.cpu.level_gb_s[name]} GB/s` : ""}`).join(", ")],
          ["roofline", `${machine.cpu.bandwidth_gb_s} GB/s both ways (${machine.cpu.read_gb_s} read, ${machine.cpu.write_gb_s} written), ${machine.cpu.peak_gflop_s} GFLOP/s fp32 (${machine.cpu.figures})`],
          ["a call", machine.cpu.call_us ? `${machine.cpu.call_us} µs from Python into C, ${machine.cpu.wake_us} µs to wake all threads` : "not measured; kernelwright doctor --measure does"],
          ["sandbox", machine.sandbox], ["GPUs", machine.gpus.join(", ") || "none"], ["models", machine.models], ["search", machine.search], ["lifting", machine.lifting],
          ["compilers", Object.entries(machine.compilers).map(([name, version]) => version ?? `no ${name}`).join(", ")], ["targets", machine.targets.join(", ")],
        ]} /></section>
      </>}
    </>
  );
}
