// The workbench: make a kernel for a module, judge a kernel, check and run a sketch, migrate a kernel. Each shows the command that does the same.
import { useEffect, useState, type ReactNode } from "react";
import { get, type About } from "../api";
import { Empty, Tabs, Wrong } from "../parts/basics";
import { Judging } from "./judging";
import { Making } from "./making";
import { Migrating } from "./migrating";
import { Sketching } from "./sketching";

let known: Promise<About> | null = null;

export function useAbout(): [About | null, unknown] {
  const [about, set] = useState<About | null>(null);
  const [error, fail] = useState<unknown>(null);
  useEffect(() => {
    known ??= get<About>("/about");
    known.then(set, (caught) => { known = null; fail(caught); });
  }, []);
  return [about, error];
}

const TABS: [string, string, (about: About) => ReactNode][] = [
  ["make", "Make a kernel", (about) => <Making about={about} />],
  ["judge", "Judge a kernel", (about) => <Judging about={about} />],
  ["sketch", "Edit a sketch", (about) => <Sketching about={about} />],
  ["migrate", "Migrate", (about) => <Migrating about={about} />],
];

export function WorkbenchView() {
  const [about, error] = useAbout();
  const [tab, set] = useState(() => new URLSearchParams(location.search).get("tab") ?? "make");
  const choose = (id: string) => {
    set(id);
    history.replaceState(null, "", location.pathname + (id === "make" ? "" : "?tab=" + id));
  };
  if (!about) return error ? <Wrong error={error} /> : <Empty>Loading …</Empty>;
  return (
    <>
      <div className="title-row"><h1>Workbench</h1></div>
      <Tabs label="Workbench" chosen={tab} choose={choose} tabs={TABS.map(([id, title, body]) => ({ id, title, body: () => body(about) }))} />
    </>
  );
}
