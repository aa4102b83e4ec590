// Main: renders the shell, after sign-in where the studio has one.
import { render } from "preact";
import { pageNamed } from "./app/pages";
import { route } from "./app/router";
import { Shell } from "./app/shell";
import { Gate } from "./app/sign_in";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/shell.css";

// Load the page's module in parallel with the session; if it fails, the shell shows that.
pageNamed(route.value.page)
  ?.load()
  .catch(() => undefined);

const holder = document.getElementById("studio");
if (holder) {
  holder.textContent = "";
  render(
    <Gate>
      <Shell />
    </Gate>,
    holder,
  );
}
