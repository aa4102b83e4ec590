// Colours: a perceptually even scale in both themes, safe for colour blindness; red is for throttled requests.

/** A point of the scale in OKLCH: lightness, chroma, hue. Lightness alone gives the order, so it works in grey, too. */
type Stop = readonly [number, number, number];

const LIGHT: readonly Stop[] = [
  [0.965, 0.012, 95],
  [0.9, 0.07, 95],
  [0.8, 0.1, 150],
  [0.64, 0.1, 205],
  [0.48, 0.12, 255],
  [0.31, 0.14, 285],
];
const DARK: readonly Stop[] = [
  [0.225, 0.02, 270],
  [0.33, 0.12, 285],
  [0.48, 0.12, 255],
  [0.64, 0.1, 205],
  [0.8, 0.12, 150],
  [0.95, 0.13, 100],
];

export type Rgb = readonly [number, number, number];

/** Convert OKLCH to sRGB, clamped to the gamut. */
function rgb([lightness, chroma, hue]: Stop): Rgb {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const [red = 0, green = 0, blue = 0] = linear.map((each) => {
    const clamped = Math.min(1, Math.max(0, each));
    return Math.round(255 * (clamped <= 0.0031308 ? 12.92 * clamped : 1.055 * clamped ** (1 / 2.4) - 0.055));
  });
  return [red, green, blue];
}

/** Return the colour at a position on the scale, 0 to 1. */
export function colourAt(dark: boolean, position: number): Rgb {
  const stops = dark ? DARK : LIGHT;
  const at = Math.min(1, Math.max(0, position)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const [from, to] = [stops[low] as Stop, stops[low + 1] as Stop];
  const part = at - low;
  return rgb(
    [0, 1, 2].map(
      (each) => (from[each] as number) + ((to[each] as number) - (from[each] as number)) * part,
    ) as unknown as Stop,
  );
}

const isLittleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

function pixel([red, green, blue]: Rgb): number {
  return isLittleEndian
    ? ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0
    : ((red << 24) | (green << 16) | (blue << 8) | 255) >>> 0;
}

/** The scale as 256 pixels, and 256 shades of red by the share of throttled requests. */
export interface Scale {
  readonly heat: Uint32Array;
  readonly red: Uint32Array;
}

const scales = new Map<boolean, Scale>();

export function scaleOf(dark: boolean): Scale {
  const cached = scales.get(dark);
  if (cached) return cached;
  const heat = Uint32Array.from({ length: 256 }, (_, at) => pixel(colourAt(dark, at / 255)));
  const red = Uint32Array.from({ length: 256 }, (_, at) =>
    pixel(rgb([dark ? 0.5 + (at / 255) * 0.17 : 0.64 - (at / 255) * 0.1, 0.2 + (at / 255) * 0.05, 27])),
  );
  const scale = { heat, red };
  scales.set(dark, scale);
  return scale;
}

/** Return a gradient of the scale for a legend. */
export function gradient(dark: boolean): string {
  const parts = Array.from({ length: 9 }, (_, at) => `rgb(${colourAt(dark, at / 8).join(" ")})`);
  return `linear-gradient(to right, ${parts.join(", ")})`;
}

const FIRST = 0.26; // of the scale: the smallest amount is clearly different from nothing

/** Return the position of an amount on the scale, 0 to 1, by its logarithm, so that a hot key does not hide the others. */
export function scalePosition(amount: number, most: number, least: number): number {
  if (amount <= 0 || most <= 0) return 0;
  if (most <= least) return 1;
  return Math.min(1, FIRST + (1 - FIRST) * (Math.log(Math.max(1, amount / least)) / Math.log(most / least)));
}
