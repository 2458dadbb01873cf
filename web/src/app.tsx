// The frame: where one is, whether the stream stands, light or dark; and the view that the address names. Views are loaded when they are opened.
import { lazy, Suspense } from "react";
import { useConnected } from "./live";
import { Empty } from "./parts/basics";
import { follow, useRoute } from "./route";
import { ThemeButton } from "./theme";
import { RunsView } from "./views/runs";

const RunView = lazy(() => import("./views/run").then((module) => ({ default: module.RunView })));
const WorkbenchView = lazy(() => import("./views/workbench").then((module) => ({ default: module.WorkbenchView })));
const BenchView = lazy(() => import("./views/bench").then((module) => ({ default: module.BenchView })));
const MachineView = lazy(() => import("./views/machine").then((module) => ({ default: module.MachineView })));

const PLACES: [string, string, string][] = [["", "/", "Runs"], ["new", "/new", "Workbench"], ["bench", "/bench", "Bench"], ["machine", "/machine", "Machine"]];

export function App() {
  const [place = "", name, , other] = useRoute();
  const connected = useConnected();
  return (
    <>
      <a className="skip" href="#main">To the content</a>
      <header className="top">
        <a className="brand" href="/" onClick={follow}><svg viewBox="0 0 16 16" aria-hidden="true"><rect width="16" height="16" rx="4" /><path d="M3 12l4-5 2 2 4-6" /></svg><span>Kernelwright</span></a>
        <nav aria-label="Main">{PLACES.map(([id, path, title]) => <a key={path} href={path} onClick={follow} aria-current={(place === "run" ? "" : place) === id ? "page" : undefined}>{title}</a>)}</nav>
        <span className={"link " + (connected ? "on" : "off")} role="status">{connected ? "live" : "connecting"}</span>
        <ThemeButton />
      </header>
      <main id="main" tabIndex={-1}>
        <Suspense fallback={<Empty>Loading …</Empty>}>
          {place === "" ? <RunsView /> : place === "run" && name ? <RunView run={name} key={name} /> : place === "new" ? <WorkbenchView /> : place === "bench" ? <BenchView report={name} against={other} />
            : place === "machine" ? <MachineView /> : <Empty>There is nothing at this address. <a href="/" onClick={follow}>All runs</a></Empty>}
        </Suspense>
      </main>
    </>
  );
}
