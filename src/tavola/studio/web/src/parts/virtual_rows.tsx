// VirtualRows: a long list of rows of one height, of which only those in view are in the document.
import type { ComponentChildren, HTMLAttributes, Ref, RefObject } from "preact";
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "preact/hooks";

const PIXELS_MAX = 15_000_000; // beyond about this height browsers lose precision, and then the element

/** Which rows of a scrolling box are in view. A list taller than browsers can lay out is scaled: one pixel of scrolling is several of content. */
export function useVirtualWindow(
  box: RefObject<HTMLDivElement | null>,
  count: number,
  rowHeight: number,
  spare: number,
) {
  const [view, setView] = useState({ top: 0, height: 600 });
  const height = count * rowHeight;
  const scale = height > PIXELS_MAX ? height / PIXELS_MAX : 1;
  const measure = () => {
    const element = box.current;
    if (element) setView({ top: element.scrollTop, height: element.clientHeight });
  };
  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const top = view.top * scale;
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(count, Math.ceil((top + view.height) / rowHeight) + spare);
  return {
    view,
    /** Content pixels above the view. */
    top,
    scale,
    /** The first row to render, and the one after the last. */
    first,
    last,
    nearEnd: count > 0 && last >= count - spare,
    onScroll: measure,
    spaceStyle: { height: `${Math.min(height, PIXELS_MAX)}px` },
    windowStyle: {
      transform: `translateY(${scale === 1 ? first * rowHeight : view.top - (top - first * rowHeight)}px)`,
    },
  };
}

export interface VirtualHandle {
  /** Scroll a row into view. */
  reveal(row: number): void;
  element(): HTMLDivElement | null;
}

const SPARE_ROWS = 8; // rendered beyond each edge, so that a quick scroll shows no gap

interface VirtualRowsProps extends Omit<HTMLAttributes<HTMLDivElement>, "height"> {
  count: number;
  rowHeight: number;
  /** Renders the row with this number. */
  render: (row: number) => ComponentChildren;
  /** Called when the last rows come into view. */
  onNearEnd?: () => void;
  handle?: Ref<VirtualHandle>;
  height?: string;
}

export function VirtualRows({ count, rowHeight, render, onNearEnd, handle, height, ...rest }: VirtualRowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const { scale, first, last, nearEnd, onScroll, spaceStyle, windowStyle } = useVirtualWindow(
    box,
    count,
    rowHeight,
    SPARE_ROWS,
  );
  useImperativeHandle(
    handle ?? null,
    () => ({
      element: () => box.current,
      reveal: (row: number) => {
        const element = box.current;
        if (!element) return;
        const top = (row * rowHeight) / scale;
        const space = element.clientHeight - rowHeight;
        if (top < element.scrollTop) element.scrollTop = top;
        else if (top > element.scrollTop + space) element.scrollTop = top - space;
      },
    }),
    [rowHeight, scale],
  );
  const latestOnNearEnd = useRef(onNearEnd);
  latestOnNearEnd.current = onNearEnd;
  useEffect(() => {
    if (nearEnd) latestOnNearEnd.current?.();
  }, [nearEnd, count]);
  const rows: ComponentChildren[] = [];
  for (let row = first; row < last; row += 1) rows.push(render(row));
  return (
    <div
      {...rest}
      ref={box}
      class={`virtual ${String(rest.class ?? "")}`}
      style={{ height: height ?? "100%" }}
      onScroll={onScroll}
    >
      <div class="space" role="presentation" style={spaceStyle}>
        <div class="window" role="presentation" style={windowStyle}>
          {rows}
        </div>
      </div>
    </div>
  );
}
