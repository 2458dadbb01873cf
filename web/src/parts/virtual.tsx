// A list of any length: only what is in sight is drawn. Rows have one height; the window itself scrolls.
import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";

const SPARE = 8;

export function VirtualList({ count, height, row, need, label }: {
  count: number; height: number; row: (at: number) => ReactNode; need: (from: number, to: number) => void; label: string;
}) {
  const host = useRef<HTMLDivElement>(null);
  const [[from, to], see] = useState<[number, number]>([0, 30]);
  const wanted = useRef<number | null>(null);
  const look = useRef(() => {});
  look.current = () => {
    const top = host.current?.getBoundingClientRect().top ?? 0;
    const first = Math.max(0, Math.floor(-top / height) - SPARE), last = Math.min(count, Math.ceil((innerHeight - top) / height) + SPARE);
    see((old) => (old[0] === first && old[1] === last ? old : [first, Math.max(first, last)]));
  };
  useLayoutEffect(() => look.current(), [count, height]);
  useEffect(() => {
    let asked = 0;
    const soon = () => {
      cancelAnimationFrame(asked);
      asked = requestAnimationFrame(() => look.current());
    };
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
      cancelAnimationFrame(asked);
    };
  }, []);
  useEffect(() => need(from, to), [from, to, need]);
  useEffect(() => {
    if (wanted.current === null) return;
    const link = host.current?.querySelector<HTMLElement>(`[data-at="${wanted.current}"] a`);
    if (link) {
      wanted.current = null;
      link.focus({ preventScroll: true });
      link.scrollIntoView({ block: "nearest" });
    }
  });
  const keys = (event: KeyboardEvent) => {
    const at = Number((document.activeElement?.closest("[data-at]") as HTMLElement | null)?.dataset.at ?? -1);
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 12, PageUp: -12, Home: -count, End: count }[event.key];
    if (!step || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(count - 1, at + step));
    wanted.current = next;
    const top = (host.current?.getBoundingClientRect().top ?? 0) + scrollY + next * height;
    if (top < scrollY + 80) scrollTo({ top: top - 120 });
    else if (top + height > scrollY + innerHeight) scrollTo({ top: top + height - innerHeight + 24 });
    look.current();
    see((old) => [...old] as [number, number]);
  };
  const shown = [];
  for (let at = from; at < Math.min(to, count); at++) shown.push(at);
  return (
    <div ref={host} className="virtual" role="list" aria-label={label} style={{ height: count * height }} onKeyDown={keys}>
      {shown.map((at) => (
        <div key={at} role="listitem" aria-setsize={count} aria-posinset={at + 1} data-at={at} style={{ transform: `translateY(${at * height}px)`, height }}>{row(at)}</div>
      ))}
    </div>
  );
}
