// Applies the selected theme before the first paint, and removes one-time notices from the URL.
// Pages work without this script.
"use strict";
(() => {
  const KEY = "tavola-theme";
  const root = document.documentElement;

  function selectedTheme() {
    try {
      const stored = localStorage.getItem(KEY);
      return stored === "light" || stored === "dark" ? stored : "system";
    } catch {
      return "system"; // the browser blocks storage
    }
  }

  function applyTheme(theme) {
    if (theme === "system") {
      delete root.dataset.theme;
    } else {
      root.dataset.theme = theme;
    }
  }

  applyTheme(selectedTheme());

  const url = new URL(location.href);
  if (url.searchParams.has("done") || url.searchParams.has("made")) {
    url.searchParams.delete("done");
    url.searchParams.delete("made");
    history.replaceState(history.state, "", url);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const themeSwitch = document.querySelector("[data-theme-switch]");
    const select = document.getElementById("theme");
    if (!themeSwitch || !select) {
      return;
    }
    themeSwitch.hidden = false;
    select.value = selectedTheme();
    select.addEventListener("change", () => {
      applyTheme(select.value);
      try {
        localStorage.setItem(KEY, select.value);
      } catch {
        // applies to this page only
      }
    });
  });
})();
