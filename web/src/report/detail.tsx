// What opens below a row: verdict, sketch, kernel, task and lineage of a record, each on a tab.
import { useEffect, useState } from "react";
import type { Facts as Dict, Verdict } from "../api";
import { milli, percent, words } from "../format";
import { Empty, Facts, Tabs, Wrong } from "../parts/basics";
import { Code } from "../parts/code";
import { VerdictView } from "../parts/verdict";
import { intervalOf, type Rec, type Texts } from "./data";

export function Detail({ record, texts }: { record: Rec; texts: (key: string) => Promise<Texts> }) {
  const [found, set] = useState<Texts | null>(null);
  const [error, fail] = useState<unknown>(null);
  const [tab, choose] = useState("Verdict");
  useEffect(() => {
    let here = true;
    texts(record.key).then((told) => here && set(told), (caught) => here && fail(caught));
    return () => { here = false; };
  }, [record.key, texts]);
  if (!found) return error ? <Wrong error={error} /> : <Empty>Loading …</Empty>;
  const codes: [string, string | undefined][] = [["Sketch", found.sketch], ["Kernel", found.kernel], ["Task", found.task]];
  return (
    <div className="sheet">
      <Tabs label={record.key} chosen={tab} choose={choose} tabs={[
        { id: "Verdict", title: "Verdict", body: () => <VerdictTab record={record} text={found.verdict} /> },
        ...codes.filter(([, text]) => text).map(([name, text]) => ({ id: name, title: name, body: () => <Code text={text!} title={name.toLowerCase()} tall /> })),
        ...(record.lineage.length ? [{ id: "Lineage", title: "Lineage", body: () => <Lineage record={record} /> }] : []),
      ]} />
    </div>
  );
}

function parsed(text: string | undefined): Verdict | null {
  try {
    return text ? (JSON.parse(text) as Verdict) : null;
  } catch {
    return null;
  }
}

function VerdictTab({ record, text }: { record: Rec; text?: string }) {
  const verdict = parsed(text), { timing } = record;
  return (
    <>
      {verdict && <VerdictView verdict={{ ...verdict, timing: verdict.timing ?? timing }} />}
      <Facts rows={[
        ...(verdict ? [] : ([["outcome", words(record.outcome)], ["reason", record.reason], ["executed", record.execution], ["library calls", record.library_calls.join(", ")],
          ["over eager", timing && `${intervalOf(timing)}, kernel ${milli(timing.kernel_ms)} ms`], ["roofline", timing?.roofline_fraction && `${percent(timing.roofline_fraction)} of ${milli(timing.roofline_ms)} ms`],
          ["the task", record.task_flags.join("; ")], ["warnings", record.warnings.join("; ")]] as [string, string][])),
        ["family", record.family], ["track", record.track], ["language", record.dsl], ["scaled", record.scaled.join(", ")],
        ["reference", record.reference_ms && `${milli(record.reference_ms)} ms at first look`], ["drafts judged", record.tried || null],
        ["took", `${record.seconds.toFixed(1)} s` + (record.cost_usd ? `, $${record.cost_usd.toFixed(3)}` : "")], ["finished", record.finished], ["file", record.path],
      ]} />
    </>
  );
}

/** A fact of a step in words; hashes are shortened, what is empty is left out. */
function fact([name, value]: [string, unknown]): string {
  if (value === null || value === undefined || value === "" || (typeof value === "object" && !Object.keys(value).length)) return "";
  const brief = (item: unknown) => (typeof item === "string" && /^[0-9a-f]{16,}$/.test(item) ? item.slice(0, 8) : typeof item === "number" ? String(+item.toPrecision(4)) : String(item));
  if (Array.isArray(value)) return `${name}: ${value.map(brief).join("; ")}`;
  return `${name}: ` + (typeof value === "object" ? Object.entries(value as Dict).map(([key, item]) => `${key} ${brief(item)}`).join(", ") : brief(value));
}

function Lineage({ record }: { record: Rec }) {
  return (
    <ol className="lineage">
      {record.lineage.map((step, place) => {
        const { reason, ...rest } = step.facts;
        return (
          <li key={place}><b>{step.step}</b> <span className="soft">after {step.seconds.toFixed(1)} s</span>{reason ? <div>{String(reason)}</div> : null}
            <div className="soft">{Object.entries(rest).map(fact).filter(Boolean).join("  ·  ")}</div></li>
        );
      })}
    </ol>
  );
}
