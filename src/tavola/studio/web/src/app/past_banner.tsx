// PastBanner: shown on every page while it shows an earlier point in time; changes the time or returns to now.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button, Icon } from "../parts";
import { asOf, setAsOf } from "./as_of";
import { useCommands } from "./commands";
import { supportsAsOf } from "./pages";
import { route } from "./router";
import { currentTable } from "./session";
import { formatAgo, formatDateTime, parseIso } from "../format";

/** Whether the time slider is shown under the bar. */
export const sliderOpen = signal(false);

type SliderComponent = ComponentType<{ table: string; focus?: boolean }>;

/** The button in the top bar that opens the time slider. */
export function TimeButton() {
  useCommands([
    {
      id: "time-travel",
      title: "View an earlier time",
      keys: "t",
      group: "General",
      run: () => (sliderOpen.value = !sliderOpen.value),
    },
    { id: "time-now", title: "Return to now", group: "General", run: () => setAsOf("") },
  ]);
  if (!currentTable.value || !supportsAsOf(route.value.page)) return null;
  return (
    <Button
      kind="quiet"
      aria-expanded={sliderOpen.value}
      title="View an earlier time"
      onClick={() => (sliderOpen.value = !sliderOpen.value)}
    >
      <Icon path="M4 10a6.500 6.500 0 1 1 2 4.700M4 10V6M4 10h3.500M10 7v3.500l2.500 1.500" />
      <span class="hidden-text">View an earlier time</span>
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
  if ((!past && !open) || !supportsAsOf(route.value.page)) return null;
  const ms = parseIso(past);
  return (
    <div class="past-bar">
      {past ? (
        <div class="notice warning">
          <div class="grow">
            <span role="status">
              {ms ? (
                <>
                  Viewing data as of <strong title={past}>{formatDateTime(ms)}</strong> (read-only)
                </>
              ) : (
                `“${past.slice(0, 60)}” is not a valid time.`
              )}
            </span>
            {/* Outside the status element: it changes every second and should not be read out each time. */}
            {ms ? <span class="small"> · {formatAgo(ms)}</span> : null}
          </div>
          {onSlider ? null : (
            <Button small aria-expanded={sliderOpen.value} onClick={() => (sliderOpen.value = !sliderOpen.value)}>
              {sliderOpen.value ? "Hide time slider" : "Change time"}
            </Button>
          )}
          <Button small onClick={() => setAsOf("")}>
            Return to now
          </Button>
        </div>
      ) : null}
      {open ? <LazySlider table={table} /> : null}
    </div>
  );
}

/** The time slider, loaded when it is first opened. */
function LazySlider({ table }: { table: string }) {
  const [Slider, setSlider] = useState<SliderComponent | null>(null);
  useEffect(() => {
    let unmounted = false;
    void import("../pages/time/slider").then((module) => unmounted || setSlider(() => module.TimeSlider));
    return () => {
      unmounted = true;
    };
  }, []);
  return <div class="past-slider">{Slider ? <Slider key={table} table={table} focus /> : null}</div>;
}
