// Texts of a run by their hash: fetched when somebody looks, and kept, since what has a hash does not change.
import { useEffect, useState } from "react";
import { get, Problem, type Step, type Verdict } from "../api";
import { Empty, Wrong } from "../parts/basics";
import { VerdictView } from "../parts/verdict";

const MOST = 60;
const kept = new Map<string, Promise<string>>();

export function fetchText(run: string, hash: string): Promise<string> {
  const found = kept.get(hash);
  if (found) return found;
  const asked = get<{ text: string; cut: boolean }>(`/runs/${encodeURIComponent(run)}/texts/${hash}`).then((told) => (told.cut ? told.text + "\n… cut here\n" : told.text));
  asked.catch(() => kept.delete(hash));
  kept.set(hash, asked);
  if (kept.size > MOST) kept.delete(kept.keys().next().value!);
  return asked;
}

export interface Text { text: string | null; error: unknown }

export function useText(run: string, hash: string | null | undefined): Text {
  const [found, set] = useState<Text & { hash?: string | null }>({ text: null, error: null });
  useEffect(() => {
    let here = true;
    if (hash) fetchText(run, hash).then((text) => here && set({ text, error: null, hash }), (error) => here && set({ text: null, error, hash }));
    return () => { here = false; };
  }, [run, hash]);
  return found.hash === hash ? found : { text: null, error: null };
}

export function asVerdict(text: string | null): Verdict | null {
  if (!text || text[0] !== "{") return null;
  try {
    const data = JSON.parse(text) as Verdict;
    return typeof data.status === "string" && typeof data.reason === "string" ? data : null;
  } catch {
    return null;
  }
}

export function VerdictOf({ run, step }: { run: string; step: Step }) {
  const result = useText(run, step.result);
  if (result.error) return result.error instanceof Problem && result.error.status === 404 ? <Empty>The verdict is no longer kept.</Empty> : <Wrong error={result.error} />;
  if (result.text === null) return <Empty>Loading …</Empty>;
  const verdict = asVerdict(result.text);
  return verdict ? <VerdictView verdict={verdict} /> : <p>{step.reason}</p>;
}
