// A place to write code in: a text area over the same text in colours, with line numbers and marks at lines. Files can be dropped on it.
import { useMemo, useRef, useState, type DragEvent, type KeyboardEvent } from "react";
import { lines } from "../highlight";
import { Pieces } from "./code";

const LARGEST = 1_000_000;

export function Editor({ value, change, label, marks, drop, rows = 18, placeholder }: {
  value: string; change: (text: string) => void; label: string; marks?: Map<number, string>; drop?: (name: string) => void; rows?: number; placeholder?: string;
}) {
  const shade = useRef<HTMLPreElement>(null);
  const [over, setOver] = useState(false);
  const [refused, refuse] = useState("");
  const found = useMemo(() => lines(value), [value]);
  const take = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > LARGEST) return refuse(`${file.name} is larger than a megabyte`);
    refuse("");
    change(await file.text());
    drop?.(file.name.replace(/\.py$/, "").replace(/\W+/g, "_"));
  };
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void take(event.dataTransfer.files[0]);
  };
  const keys = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // Tab leaves the field, as everywhere; Ctrl+] indents by four.
    if (event.key === "]" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      const area = event.currentTarget, at = area.selectionStart;
      change(value.slice(0, at) + "    " + value.slice(area.selectionEnd));
      requestAnimationFrame(() => area.setSelectionRange(at + 4, at + 4));
    }
  };
  return (
    <div className={"editor" + (over ? " over" : "")} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={dropped}>
      <div className="editor-head"><span>{label}</span><label className="button quiet">Open file<input type="file" accept=".py,.txt,.cu,.cpp" className="hidden" onChange={(event) => { void take(event.target.files?.[0]); event.target.value = ""; }} /></label></div>
      <div className="editor-body" style={{ height: `${rows * 1.55 * 12.5 + 26}px` }}>
        <pre ref={shade} aria-hidden="true"><code>{found.map((line, place) => <span key={place} className={"line" + (marks?.has(place + 1) ? " marked" : "")} data-line={place + 1}><Pieces of={line} />{"\n"}</span>)}</code></pre>
        <textarea aria-label={label} spellCheck={false} autoCapitalize="off" autoComplete="off" wrap="off" value={value} placeholder={placeholder} onKeyDown={keys}
          onChange={(event) => change(event.target.value)} onScroll={(event) => { if (shade.current) { shade.current.scrollTop = event.currentTarget.scrollTop; shade.current.scrollLeft = event.currentTarget.scrollLeft; } }} />
      </div>
      {refused && <p className="wrong" role="alert">{refused}</p>}
      {marks && marks.size > 0 && <ul className="marks" role="alert">{[...marks].map(([line, said]) => <li key={line}>{line > 0 ? <b>line {line}: </b> : null}{said}</li>)}</ul>}
    </div>
  );
}
