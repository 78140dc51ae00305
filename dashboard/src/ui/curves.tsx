import { useState } from "react";
import { Button } from "./button";
import { Curve, type CurvePoint } from "./curve";
import styles from "./curve.module.css";
import { formatNumber, plural } from "./format";

export interface Series {
  name: string;
  points: readonly CurvePoint[];
  /** Formats a value. Default: the number in a few digits. */
  formatY?: (y: number) => string;
}

const MAX_SHOWN = 12;

/** One chart per series, because scales differ. At first, shows a few: there may be hundreds. */
export function Curves({
  series,
  formatX,
}: {
  series: readonly Series[];
  formatX: (x: number) => string;
}) {
  const [isAll, setAll] = useState(false);
  const shown = isAll ? series : series.slice(0, MAX_SHOWN);
  return (
    <>
      <div className={styles.curves}>
        {shown.map(({ formatY = formatMeasure, ...each }) => (
          <Curve key={each.name} {...each} formatX={formatX} formatY={formatY} />
        ))}
      </div>
      {shown.length < series.length && (
        <div>
          <Button onClick={() => setAll(true)}>
            Show {plural(series.length - shown.length, "other")}
          </Button>
        </div>
      )}
    </>
  );
}

/** A number of any size in a few digits: losses are small, token counts are large. */
const formatMeasure = (value: number): string => {
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) return value.toExponential(2);
  return formatNumber(value, size >= 1000 ? 0 : size >= 1 ? 3 : 5);
};
