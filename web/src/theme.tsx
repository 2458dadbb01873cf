// Light, dark, or as the system says; kept in the browser.
import { useState } from "react";

type Theme = "" | "light" | "dark";
const THEMES: Theme[] = ["", "light", "dark"];
const TITLES: Record<Theme, string> = { "": "◐ System", light: "☀ Light", dark: "☾ Dark" };

function stored(): Theme {
  try {
    const found = localStorage.getItem("theme") ?? "";
    return found === "light" || found === "dark" ? found : "";
  } catch {
    return ""; // a page from a file may keep nothing
  }
}

function apply(theme: Theme): void {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    /* nothing to keep it in */
  }
}

export function ThemeButton() {
  const [theme, set] = useState<Theme>(() => {
    const found = stored();
    apply(found);
    return found;
  });
  const turn = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    apply(next);
    set(next);
  };
  return <button id="theme" type="button" className="quiet" onClick={turn} aria-label={`Colours: ${theme || "system"}; change`}>{TITLES[theme]}</button>;
}
