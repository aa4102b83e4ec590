// Theme: light, dark or as the system has it; kept in this browser.
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark" | "system";
const KEPT = "tavola.theme";

function kept(): Theme {
  try {
    const found = localStorage.getItem(KEPT);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system"; // a browser that keeps nothing
  }
}

export const theme = signal<Theme>(kept());
const wish = matchMedia("(prefers-color-scheme: dark)");
/** Whether it is dark now, whoever decided it; canvases ask. */
export const dark = signal(isDark());

function isDark(): boolean {
  return theme.value === "dark" || (theme.value === "system" && wish.matches);
}

wish.addEventListener("change", () => {
  dark.value = isDark();
});

effect(() => {
  const chosen = theme.value;
  dark.value = isDark();
  try {
    if (chosen === "system") localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, chosen);
  } catch {
    // A browser that keeps nothing still shows the colours.
  }
});

effect(() => {
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
});
