import type { JobMetrics } from "@forge/sdk";
import type { Series } from "../ui/curves";
import { formatDuration } from "../ui/format";

/** The series that are shown first, in this order. */
const FIRST = ["loss", "progress"];

/**
 * The reported series; x is the time since the first point, in seconds. The order: the series in
 * FIRST, then the others by name, then the series whose value never changes, by name.
 */
export function seriesOf({ at, series }: Pick<JobMetrics, "at" | "series">): Series[] {
  const times = at.map((each) => Date.parse(each));
  const startMs = times[0] ?? 0;
  return Object.entries(series)
    .map(([name, values]) => ({
      name,
      points: values.flatMap((y, index) =>
        y === null ? [] : [{ x: ((times[index] ?? startMs) - startMs) / 1000, y }],
      ),
    }))
    .filter(({ points }) => points.length > 0)
    .sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name));
}

function rank({ name, points }: Series): number {
  const known = FIRST.indexOf(name);
  if (known >= 0) return known;
  const isFlat = points.every(({ y }) => y === points[0]?.y);
  return FIRST.length + (isFlat ? 1 : 0);
}

export const formatSeconds = (seconds: number): string =>
  seconds === 0 ? "0 s" : formatDuration(seconds * 1000);
