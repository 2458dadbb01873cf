// Code to read: coloured, with line numbers, and marks at lines. Long files are drawn as far as they are looked at.
import { memo, useMemo, useState, type ReactNode } from "react";
import { lines, type Piece } from "../highlight";
import { Copy } from "./basics";

const FIRST = 1500;

export const Pieces = memo(({ of }: { of: Piece[] }) => (
  <>{of.map(([kind, text], place) => (kind ? <span key={place} className={kind}>{text}</span> : text))}</>
));

export function Code({ text, title, marks, extra, tall }: {
  text: string; title?: string; marks?: Map<number, string>; extra?: ReactNode; tall?: boolean;
}) {
  const all = useMemo(() => lines(text.replace(/\n$/, "")), [text]);
  const [whole, show] = useState(false);
  const shown = whole ? all : all.slice(0, FIRST);
  return (
    <div className="code">
      {(title || extra) && <div className="code-head"><b>{title}</b><span className="grow" />{extra}<Copy text={text} /></div>}
      <pre tabIndex={0} aria-label={title ?? "code"} className={tall ? "tall" : ""}>
        <code>
          {shown.map((line, place) => (
            <span key={place} className={"line" + (marks?.has(place + 1) ? " marked" : "")} data-line={place + 1} title={marks?.get(place + 1)}>
              <Pieces of={line} />{"\n"}
            </span>
          ))}
        </code>
      </pre>
      {all.length > shown.length && <button type="button" onClick={() => show(true)}>Show all {all.length.toLocaleString()} lines</button>}
    </div>
  );
}
