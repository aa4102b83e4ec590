// Main: puts the shell on the page.
import { render } from "preact";
import { pageNamed } from "./app/pages";
import { route } from "./app/router";
import { Shell } from "./app/shell";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/shell.css";

// The page's module comes while the session is asked for, and not after it; where it cannot be had, the shell tells.
pageNamed(route.value.page)
  ?.load()
  .catch(() => undefined);

const holder = document.getElementById("studio");
if (holder) {
  holder.textContent = "";
  render(<Shell />, holder);
}
