// VirtualRows: as many rows as there are, of which only those in view are on the page.
import type { ComponentChildren, HTMLAttributes, Ref } from "preact";
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface VirtualHandle {
  /** Bring a row into view. */
  reveal(row: number): void;
  element(): HTMLDivElement | null;
}

const SPARE = 8; // rows beyond each edge, so that a quick scroll shows no gap
const PIXELS_MAX = 15_000_000; // browsers lose precision, and then the element, somewhere past this

/** Rows of one height. `render` gives row `at`; `onNearEnd` is called when the last rows come into view. */
export function VirtualRows({
  count,
  rowHeight,
  render,
  onNearEnd,
  handle,
  height,
  ...rest
}: {
  count: number;
  rowHeight: number;
  render: (at: number) => ComponentChildren;
  onNearEnd?: () => void;
  handle?: Ref<VirtualHandle>;
  height?: string;
} & Omit<HTMLAttributes<HTMLDivElement>, "height">) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const whole = count * rowHeight;
  const scale = whole > PIXELS_MAX ? whole / PIXELS_MAX : 1; // beyond it, one pixel of scrolling is several of content
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    measure();
    const watching = new ResizeObserver(measure);
    watching.observe(element);
    return () => watching.disconnect();
  }, []);
  useImperativeHandle(
    handle ?? null,
    () => ({
      element: () => box.current,
      reveal: (row: number) => {
        const element = box.current;
        if (!element) return;
        const top = (row * rowHeight) / scale;
        const room = element.clientHeight - rowHeight;
        if (top < element.scrollTop) element.scrollTop = top;
        else if (top > element.scrollTop + room) element.scrollTop = top - room;
      },
    }),
    [rowHeight, scale],
  );
  const first = Math.max(0, Math.floor((view.top * scale) / rowHeight) - SPARE);
  const last = Math.min(count, Math.ceil((view.top * scale + view.height) / rowHeight) + SPARE);
  const near = count > 0 && last >= count - SPARE;
  const end = useRef(onNearEnd);
  end.current = onNearEnd;
  useEffect(() => {
    if (near) end.current?.();
  }, [near, count]);
  const offset = scale === 1 ? first * rowHeight : view.top - (view.top * scale - first * rowHeight);
  const rows: ComponentChildren[] = [];
  for (let at = first; at < last; at += 1) rows.push(render(at));
  return (
    <div
      {...rest}
      ref={box}
      class={`virtual ${String(rest.class ?? "")}`}
      style={{ height: height ?? "100%" }}
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <div class="space" role="presentation" style={{ height: `${Math.min(whole, PIXELS_MAX)}px` }}>
        <div class="window" role="presentation" style={{ transform: `translateY(${offset}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  );
}
