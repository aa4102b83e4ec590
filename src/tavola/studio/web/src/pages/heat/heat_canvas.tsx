// HeatCanvas: draws the map; hover, brush to zoom, and move by keyboard.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { dark } from "../../app/theme";
import { scaleOf } from "./colours";
import { type Grid, rowSums } from "./grid";
import { renderPixels } from "./pixels";
import { between, type CellPlace, clamp, isWhole, type View, viewContaining, wholeView, zoomView } from "./view";

interface Size {
  readonly width: number;
  readonly height: number;
}

export interface HeatCanvasProps {
  grid: Grid;
  view: View;
  label: string;
  /** Partition splits: the time, the share of the rows from the top, and the reason. */
  cuts?: readonly (readonly [number, number, string])[];
  timeOf: (column: number) => string;
  describeCell: (cell: CellPlace) => string;
  onView: (view: View) => void;
  onOpen: (cell: CellPlace) => void;
}

const LABEL_PX = 16;
const DRAG_PX = 5;

export function HeatCanvas({ grid, view, label, cuts, timeOf, describeCell, onView, onOpen }: HeatCanvasProps) {
  const holder = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLCanvasElement>(null);
  const marks = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  const [hovered, setHovered] = useState<CellPlace | null>(null);
  const [cursor, setCursor] = useState<CellPlace | null>(null);
  const [brush, setBrush] = useState<{ from: CellPlace; x: number; y: number } | null>(null);
  const [brushed, setBrushed] = useState(false);
  const isDark = dark.value;

  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return;
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const canvas = picture.current;
    if (!canvas || !size.width || !size.height) return;
    paint(canvas, grid, view, size, isDark);
  }, [grid, view.top, view.bottom, view.left, view.right, size, isDark]);

  const rows = view.bottom - view.top;
  const columns = view.right - view.left;
  const shown = cursor ?? hovered;
  useEffect(() => {
    const canvas = marks.current;
    if (!canvas || !size.width) return;
    mark(canvas, {
      grid,
      view,
      size,
      cursor,
      hovered,
      brush: brush && brushed && hovered ? between(brush.from, hovered) : null,
      cuts: cuts ?? [],
    });
  }, [grid, view, size, cursor, hovered, brush, brushed, cuts, isDark]);

  const cellAt = (event: MouseEvent): CellPlace => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return {
      row: view.top + clamp(Math.floor(((event.clientY - box.top) / box.height) * rows), 0, rows - 1),
      column: view.left + clamp(Math.floor(((event.clientX - box.left) / box.width) * columns), 0, columns - 1),
    };
  };

  const down = (event: PointerEvent) => {
    if (event.button !== 0 || !grid.columns) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    setBrush({ from: cellAt(event), x: event.clientX, y: event.clientY });
    setBrushed(false);
    setCursor(null);
  };
  const move = (event: PointerEvent) => {
    if (!grid.columns) return;
    setHovered(cellAt(event));
    if (brush && Math.hypot(event.clientX - brush.x, event.clientY - brush.y) > DRAG_PX) setBrushed(true);
  };
  const up = (event: PointerEvent) => {
    if (!brush) return;
    const to = cellAt(event);
    setBrush(null);
    setBrushed(false);
    if (brushed) onView(between(brush.from, to));
    else onOpen(to);
  };

  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !grid.columns) return;
    const at = cursor ?? hovered ?? hottestCell(grid, view);
    const step = event.shiftKey ? 10 : 1;
    const steps: Record<string, [number, number]> = {
      ArrowUp: [-step, 0],
      ArrowDown: [step, 0],
      ArrowLeft: [0, -step],
      ArrowRight: [0, step],
      PageUp: [-rows, 0],
      PageDown: [rows, 0],
    };
    const by = steps[event.key];
    if (by) {
      const next = {
        row: clamp(at.row + (cursor ? by[0] : 0), 0, grid.rows.length - 1),
        column: clamp(at.column + (cursor ? by[1] : 0), 0, grid.columns - 1),
      };
      setCursor(next);
      const moved = viewContaining(grid, view, next);
      if (moved.top !== view.top || moved.left !== view.left) onView(moved);
    } else if (event.key === "Home") setCursor(hottestCell(grid, view));
    else if (event.key === "+" || event.key === "=") onView(zoomView(grid, view, at, 0.5));
    else if (event.key === "-") onView(zoomView(grid, view, at, 2));
    else if (event.key === "0" || (event.key === "Escape" && !isWhole(grid, view))) onView(wholeView(grid));
    else if (event.key === "Enter" || event.key === " ") onOpen(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const labels = useMemo(
    () => visibleLabels(grid, view, size.height),
    [grid, view.top, view.bottom, view.left, view.right, size.height],
  );
  const ticks = Math.max(2, Math.min(8, Math.floor(size.width / 110)));
  return (
    <div class="heat-frame">
      <div class="heat-labels" aria-hidden="true">
        {labels.map(({ row, y }) => (
          <span
            key={row}
            class={shown?.row === row ? "lit" : ""}
            style={{ top: `${y}px` }}
            title={grid.rows[row]?.label ?? ""}
          >
            {grid.rows[row]?.label}
          </span>
        ))}
      </div>
      <div
        ref={holder}
        class="heat-plot"
        role="application"
        tabIndex={0}
        aria-roledescription="heat map"
        aria-label={`${label}: ${grid.rows.length} rows of keys, ${grid.columns} columns of time`}
        aria-describedby="heat-keys heat-readout"
        data-rows={grid.rows.length}
        data-columns={grid.columns}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={() => setBrush(null)}
        onPointerLeave={() => !brush && setHovered(null)}
        onKeyDown={key}
        onFocus={(event) => {
          if (event.currentTarget.matches(":focus-visible") && !cursor && grid.columns)
            setCursor(hottestCell(grid, view));
        }}
        onBlur={() => setCursor(null)}
      >
        <canvas ref={picture} aria-hidden="true" />
        <canvas ref={marks} class="heat-marks" aria-hidden="true" />
      </div>
      <div class="heat-ticks" aria-hidden="true">
        {Array.from({ length: ticks }, (_, at) => (
          <span key={at}>{columns ? timeOf(view.left + Math.floor((at * columns) / ticks)) : ""}</span>
        ))}
      </div>
      <p id="heat-readout" class="heat-readout" aria-live="polite">
        {shown && shown.row < grid.rows.length && shown.column < grid.columns
          ? describeCell(shown)
          : "Hover over a cell or use the arrow keys."}
      </p>
      <p id="heat-keys" class="hidden-text">
        Arrow keys move between cells, with Shift ten at a time. Home goes to the hottest cell. Plus and minus zoom, 0
        resets the zoom. Enter opens the cell.
      </p>
    </div>
  );
}

function hottestCell(grid: Grid, view: View): CellPlace {
  let found: CellPlace = { row: view.top, column: view.left };
  let most = -1;
  for (let row = view.top; row < view.bottom; row++) {
    for (let column = view.left; column < view.right; column++) {
      const at = row * grid.columns + column;
      const value = (grid.cells[at] as number) + (grid.throttled[at] as number);
      if (value > most) {
        most = value;
        found = { row, column };
      }
    }
  }
  return found;
}

function paint(canvas: HTMLCanvasElement, grid: Grid, view: View, size: Size, isDark: boolean): void {
  performance.mark("tavola:heat:begin");
  const ratio = Math.min(2, devicePixelRatio || 1);
  const width = Math.max(1, Math.round(size.width * ratio));
  const height = Math.max(1, Math.round(size.height * ratio));
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext("2d");
  if (!context) return;
  const image = renderPixels(grid, view, scaleOf(isDark), width, height);
  const off = new OffscreenCanvas(image.width, image.height);
  off.getContext("2d")?.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(off, 0, 0, width, height);
  performance.mark("tavola:heat:end");
  performance.measure("tavola:heat", {
    start: "tavola:heat:begin",
    end: "tavola:heat:end",
    detail: { rows: view.bottom - view.top, columns: view.right - view.left },
  });
}

interface Marks {
  readonly grid: Grid;
  readonly view: View;
  readonly size: Size;
  readonly cursor: CellPlace | null;
  readonly hovered: CellPlace | null;
  readonly brush: View | null;
  readonly cuts: readonly (readonly [number, number, string])[];
}

/** Draw the layer above the map: partition splits, the crosshair, the keyboard cursor and the brush. */
function mark(canvas: HTMLCanvasElement, { grid, view, size, cursor, hovered, brush, cuts }: Marks): void {
  const ratio = Math.min(2, devicePixelRatio || 1);
  canvas.width = Math.max(1, Math.round(size.width * ratio));
  canvas.height = Math.max(1, Math.round(size.height * ratio));
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(ratio, ratio);
  const style = getComputedStyle(canvas);
  const text = style.getPropertyValue("--text").trim();
  const surface = style.getPropertyValue("--surface").trim();
  const wide = size.width / Math.max(1, view.right - view.left);
  const high = size.height / Math.max(1, view.bottom - view.top);
  const box = (part: View): [number, number, number, number] => [
    (part.left - view.left) * wide,
    (part.top - view.top) * high,
    (part.right - part.left) * wide,
    (part.bottom - part.top) * high,
  ];
  context.strokeStyle = text;
  for (const [atS, share, reason] of cuts) {
    const x = ((atS - grid.fromS) / grid.columnS - view.left) * wide;
    const y = (share * grid.rows.length - view.top) * high;
    context.lineWidth = 1;
    context.setLineDash(reason === "heat" ? [] : [4, 3]);
    context.beginPath();
    context.moveTo(Math.max(0, x), y);
    context.lineTo(size.width, y);
    context.stroke();
  }
  context.setLineDash([]);
  const cross = cursor ?? hovered;
  if (cross) {
    const [x, y, w, h] = box(between(cross, cross));
    context.globalAlpha = 0.55;
    context.lineWidth = 1;
    context.strokeRect(Math.round(x + w / 2) + 0.5, -1, 0, size.height + 2);
    context.strokeRect(-1, Math.round(y + h / 2) + 0.5, size.width + 2, 0);
    context.globalAlpha = 1;
  }
  if (cursor) {
    // Two lines in opposite colours, so that one is visible on any background.
    const [x, y, w, h] = box(between(cursor, cursor));
    const grow = Math.max(0, 9 - Math.min(w, h)) / 2;
    for (const [colour, more] of [
      [surface, grow + 2.5],
      [text, grow + 1],
    ] as const) {
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(x - more, y - more, w + 2 * more, h + 2 * more);
    }
  }
  if (brush) {
    const [x, y, w, h] = box(brush);
    context.fillStyle = style.getPropertyValue("--accent").trim();
    context.globalAlpha = 0.25;
    context.fillRect(x, y, w, h);
    context.globalAlpha = 1;
    context.strokeStyle = text;
    context.lineWidth = 1.5;
    context.strokeRect(x, y, w, h);
  }
}

/** Return the width of the row labels in pixels, to align what is below with the map. */
export function labelWidth(grid: Grid): number {
  const longest = grid.rows.reduce((most, row) => Math.max(most, row.label.length), 0);
  return clamp(Math.ceil(longest * 6.7) + 6, 56, 176);
}

/** Return the rows with a label: all if they fit, else the hottest that do not overlap. */
function visibleLabels(grid: Grid, view: View, height: number): { row: number; y: number }[] {
  const rows = view.bottom - view.top;
  if (!height || !rows) return [];
  const high = height / rows;
  const middle = (row: number) => clamp((row - view.top + 0.5) * high, LABEL_PX / 2, height - LABEL_PX / 2);
  if (high >= LABEL_PX)
    return Array.from({ length: rows }, (_, at) => ({ row: view.top + at, y: middle(view.top + at) }));
  const found: { row: number; y: number }[] = [];
  for (const { row } of rowSums(grid, view.left, view.right)) {
    if (row < view.top || row >= view.bottom) continue;
    const y = middle(row);
    if (found.every((each) => Math.abs(each.y - y) >= LABEL_PX)) found.push({ row, y });
    if (found.length * LABEL_PX > height) break;
  }
  return found;
}
