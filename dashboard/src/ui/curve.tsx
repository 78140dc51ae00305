import { type PointerEvent, useState } from "react";
import styles from "./curve.module.css";

export interface CurvePoint {
  x: number;
  y: number;
}

interface Props {
  name: string;
  /** Sorted by x. */
  points: readonly CurvePoint[];
  formatX: (x: number) => string;
  formatY: (y: number) => string;
}

const WIDTH = 320;
const HEIGHT = 96;
/** The maximum number of points to draw, besides the last point. A longer series is thinned. */
const MAX_DRAWN = 2 * WIDTH;

/** One series over time or steps. Shows the last value, or the value at the pointer. */
export function Curve({ name, points, formatX, formatY }: Props) {
  const [pointed, setPointed] = useState<number>();
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return null;
  const [low, high] = rangeOf(points);
  const xOf = ({ x }: CurvePoint): number => ((x - first.x) / (last.x - first.x || 1)) * WIDTH;
  const yOf = ({ y }: CurvePoint): number =>
    high === low ? HEIGHT / 2 : HEIGHT - 2 - ((y - low) / (high - low)) * (HEIGHT - 4);
  const shown = points[pointed ?? points.length - 1] ?? last;
  const point = ({ currentTarget, clientX }: PointerEvent<SVGSVGElement>): void => {
    const { left, width } = currentTarget.getBoundingClientRect();
    setPointed(nearest(points, first.x + ((clientX - left) / width) * (last.x - first.x)));
  };
  return (
    <figure className={styles.curve}>
      <figcaption className={styles.head}>
        <span className={styles.name} title={name}>
          {name}
        </span>
        <span className={styles.value}>
          {pointed !== undefined && <span className="quiet">{formatX(shown.x)}</span>}
          {formatY(shown.y)}
        </span>
      </figcaption>
      <div className={styles.body}>
        <span className={styles.scale} aria-hidden="true">
          <span>{formatY(high)}</span>
          {high !== low && <span>{formatY(low)}</span>}
        </span>
        <svg
          className={styles.plot}
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${name}: from ${formatY(first.y)} to ${formatY(last.y)}, at least ${formatY(low)}, at most ${formatY(high)}`}
          onPointerMove={point}
          onPointerLeave={() => setPointed(undefined)}
        >
          <line x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} className={styles.axis} />
          <polyline
            points={thinned(points)
              .map((each) => `${xOf(each).toFixed(1)},${yOf(each).toFixed(1)}`)
              .join(" ")}
          />
          {/* The dot is a line of length 0 with round ends. It stays round in a stretched SVG. */}
          {(pointed !== undefined || points.length === 1) && (
            <path
              d={`M${xOf(shown).toFixed(1)} ${yOf(shown).toFixed(1)}h0`}
              className={styles.dot}
            />
          )}
        </svg>
        <span className={styles.ends} aria-hidden="true">
          <span>{formatX(first.x)}</span>
          {points.length > 1 && <span>{formatX(last.x)}</span>}
        </span>
      </div>
    </figure>
  );
}

/** The lowest and the highest value. Uses a loop: Math.min(...values) fails for long series. */
function rangeOf(points: readonly CurvePoint[]): [low: number, high: number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { y } of points) {
    low = Math.min(low, y);
    high = Math.max(high, y);
  }
  return [low, high];
}

function nearest(points: readonly CurvePoint[], x: number): number {
  let best = 0;
  for (const [at, point] of points.entries()) {
    if (Math.abs(point.x - x) < Math.abs((points[best]?.x ?? 0) - x)) best = at;
  }
  return best;
}

/** Every n-th point, and the last. */
function thinned(points: readonly CurvePoint[]): readonly CurvePoint[] {
  const step = Math.ceil(points.length / MAX_DRAWN);
  return step <= 1 ? points : points.filter((_, at) => at % step === 0 || at === points.length - 1);
}
