// The theme: light, dark, or what the system says; and an address that does not say for ever what was done once.
// Pages work without this; it runs before the first paint.
"use strict";
(() => {
  const KEY = "tavola-theme";
  const root = document.documentElement;

  function chosen() {
    try {
      const kept = localStorage.getItem(KEY);
      return kept === "light" || kept === "dark" ? kept : "system";
    } catch {
      return "system"; // a browser that keeps nothing
    }
  }

  function show(theme) {
    if (theme === "system") {
      delete root.dataset.theme;
    } else {
      root.dataset.theme = theme;
    }
  }

  show(chosen());

  const here = new URL(location.href);
  if (here.searchParams.has("done") || here.searchParams.has("made")) {
    here.searchParams.delete("done");
    here.searchParams.delete("made");
    history.replaceState(history.state, "", here);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const place = document.querySelector("[data-theme-switch]");
    const select = document.getElementById("theme");
    if (!place || !select) {
      return;
    }
    place.hidden = false;
    select.value = chosen();
    select.addEventListener("change", () => {
      show(select.value);
      try {
        localStorage.setItem(KEY, select.value);
      } catch {
        // it holds for this page
      }
    });
  });
})();
