// Theme: light, dark or the system's; stored in this browser.
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark" | "system";
const STORAGE_KEY = "tavola.theme";

function storedTheme(): Theme {
  try {
    const found = localStorage.getItem(STORAGE_KEY);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system"; // storage is blocked
  }
}

export const theme = signal<Theme>(storedTheme());
const systemDark = matchMedia("(prefers-color-scheme: dark)");
/** Whether the page is dark now, for canvases. */
export const dark = signal(isDark());

function isDark(): boolean {
  return theme.value === "dark" || (theme.value === "system" && systemDark.matches);
}

systemDark.addEventListener("change", () => {
  dark.value = isDark();
});

effect(() => {
  const chosen = theme.value;
  dark.value = isDark();
  try {
    if (chosen === "system") localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, chosen);
  } catch {
    // Storage is blocked; the theme still applies to this page.
  }
});

effect(() => {
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
});
