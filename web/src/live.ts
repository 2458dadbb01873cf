// The stream of changes: one connection for the whole page, opened again by the browser when it breaks.
import { useEffect, useRef, useSyncExternalStore } from "react";
import type { RunRow } from "./api";

type Listener = (rows: RunRow[], all: boolean) => void;
const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let connected = false;
let source: EventSource | null = null;

function set(value: boolean): void {
  if (connected !== value) {
    connected = value;
    watchers.forEach((one) => one());
  }
}

export function connect(): void {
  if (source) return;
  source = new EventSource("/api/live");
  source.addEventListener("hello", () => {
    set(true);
    listeners.forEach((one) => one([], false)); // who was away does not know what was missed
  });
  source.addEventListener("runs", (event) => {
    const told = JSON.parse((event as MessageEvent<string>).data) as { rows: RunRow[]; all: boolean };
    listeners.forEach((one) => one(told.rows, told.all));
  });
  source.onerror = () => {
    set(false);
    if (source?.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(connect, 1000);
    }
  };
}

/** Called with rows that changed; `all` is false where others may have changed, too. */
export function useChanges(listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const one: Listener = (rows, all) => latest.current(rows, all);
    listeners.add(one);
    return () => {
      listeners.delete(one);
    };
  }, []);
}

export const useConnected = (): boolean =>
  useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => connected,
  );
