// report.html: the view of a report over the data that stands in the page itself. Built with Preact, so that each report stays small.
import "../tokens.css";
import "../parts.css";
import "./report.css";
import { createRoot } from "react-dom/client";
import { ThemeButton } from "../theme";
import type { Report, Texts } from "./data";
import { ReportView } from "./view";

const data = (id: string) => JSON.parse(document.getElementById(id)!.textContent!);
const report = data("report") as Report, sealed = data("details") as Record<string, string>;

/** The texts of a task travel compressed; they are opened when somebody looks. */
async function unseal(key: string): Promise<Texts> {
  if (!sealed[key]) return {};
  const bytes = Uint8Array.from(atob(sealed[key]), (letter) => letter.charCodeAt(0));
  return (await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json()) as Texts;
}

createRoot(document.getElementById("root")!).render(<main><ReportView report={report} texts={unseal} controls={<ThemeButton />} /></main>);
