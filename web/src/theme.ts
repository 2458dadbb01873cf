// Light, dark, or as the system says; kept in the browser.
export type Theme = "" | "light" | "dark";
export const THEMES: Theme[] = ["", "light", "dark"];
export const THEME_TITLES: Record<Theme, string> = { "": "◐ System", light: "☀ Light", dark: "☾ Dark" };

export function storedTheme(): Theme {
  try {
    const found = localStorage.getItem("theme") ?? "";
    return found === "light" || found === "dark" ? found : "";
  } catch {
    return ""; // a page from a file may keep nothing
  }
}

export function applyTheme(theme: Theme): void {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    /* nothing to keep it in */
  }
}
