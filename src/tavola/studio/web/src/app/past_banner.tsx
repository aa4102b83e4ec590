// PastBanner: says on every page that what is seen is not now, moves along the past, and leads back.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../parts";
import { asOf, lookAt } from "./as_of";
import { useCommands } from "./commands";
import { hasPast } from "./pages";
import { route } from "./router";
import { currentTable } from "./session";
import { agoText, momentText, msOf } from "./times";

/** Whether the slider is shown under the bar. */
export const sliderOpen = signal(false);

type Slider = ComponentType<{ table: string; focus?: boolean }>;

/** The button in the bar that opens the slider, wherever one is. */
export function TimeButton() {
  useCommands([
    {
      id: "time-travel",
      title: "Look at another time",
      keys: "t",
      group: "Everywhere",
      run: () => (sliderOpen.value = !sliderOpen.value),
    },
    { id: "time-now", title: "Back to now", group: "Everywhere", run: () => lookAt("") },
  ]);
  if (!currentTable.value || !hasPast(route.value.page)) return null;
  return (
    <Button
      kind="quiet"
      aria-expanded={sliderOpen.value}
      title="Look at another time"
      onClick={() => (sliderOpen.value = !sliderOpen.value)}
    >
      <svg
        width="16"
        height="16"
        viewBox="0 0 20 20"
        fill="none"
        stroke="currentColor"
        stroke-width="1.600"
        stroke-linecap="round"
        aria-hidden="true"
      >
        <path d="M4 10a6.500 6.500 0 1 1 2 4.700M4 10V6M4 10h3.500M10 7v3.500l2.500 1.500" />
      </svg>
      <span class="hidden-text">Look at another time</span>
    </Button>
  );
}

export function PastBanner() {
  const [, tick] = useState(0);
  const past = asOf.value;
  useEffect(() => {
    if (!past) return;
    const timer = setInterval(() => tick((before) => before + 1), 1000);
    return () => clearInterval(timer);
  }, [past]);
  const table = currentTable.value?.name;
  const onSlider = route.value.page === "time" && route.value.params["tab"] === "past";
  const open = sliderOpen.value && table && !onSlider;
  if ((!past && !open) || !hasPast(route.value.page)) return null;
  const ms = msOf(past);
  return (
    <div class="past-bar">
      {past ? (
        <div class="notice warning">
          <div class="grow">
            <span role="status">
              {ms ? (
                <>
                  You are looking at <strong title={past}>{momentText(ms)}</strong>; nothing can be changed there.
                </>
              ) : (
                `“${past.slice(0, 60)}” is no time, so nothing is shown.`
              )}
            </span>
            {/* Beside what is read out: it is another every second. */}
            {ms ? <span class="small"> That is {agoText(ms)}.</span> : null}
          </div>
          {onSlider ? null : (
            <Button small aria-expanded={sliderOpen.value} onClick={() => (sliderOpen.value = !sliderOpen.value)}>
              {sliderOpen.value ? "Hide the slider" : "Another time"}
            </Button>
          )}
          <Button small onClick={() => lookAt("")}>
            Back to now
          </Button>
        </div>
      ) : null}
      {open ? <Loaded table={table} /> : null}
    </div>
  );
}

/** The slider, loaded when it is first wanted: the first page need not carry it. */
function Loaded({ table }: { table: string }) {
  const [Found, setFound] = useState<Slider | null>(null);
  useEffect(() => {
    let gone = false;
    void import("../pages/time/slider").then((module) => gone || setFound(() => module.TimeSlider));
    return () => {
      gone = true;
    };
  }, []);
  return <div class="past-slider">{Found ? <Found key={table} table={table} focus /> : null}</div>;
}
