// Addresses: /, /run/ID, /new, /bench, /bench/ID, /bench/ID/against/ID, /machine. Links are real, so that they open in a new tab, too.
import { useEffect, useState, type MouseEvent } from "react";

const moved = new Set<() => void>();

export function go(path: string, replace = false): void {
  if (replace) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  moved.forEach((one) => one());
}

export function useRoute(): string[] {
  const [path, set] = useState(location.pathname);
  useEffect(() => {
    const look = () => set(location.pathname);
    moved.add(look);
    addEventListener("popstate", look);
    return () => {
      moved.delete(look);
      removeEventListener("popstate", look);
    };
  }, []);
  return path.split("/").filter(Boolean).map(decodeURIComponent);
}

/** For onClick of a link: go there without loading the page anew. */
export function follow(event: MouseEvent<HTMLAnchorElement>): void {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(event.currentTarget.getAttribute("href") ?? "/");
}
