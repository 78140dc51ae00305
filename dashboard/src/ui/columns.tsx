import styles from "./columns.module.css";
import { useSpan } from "./use-span";

interface ChartColumn {
  /** The start and end of the column's range, e.g. "14:00" and "14:30". */
  from: string;
  to: string;
  /** One value for each series, in the order of `series`. The first is drawn at the bottom. */
  values: readonly number[];
}

interface Series {
  name: string;
  /** A CSS colour. */
  color: string;
}

interface Props {
  label: string;
  series: readonly Series[];
  columns: readonly ChartColumn[];
  format: (value: number) => string;
  /** Labels below the first and the last column. */
  ends: readonly [string, string];
  /** Called with the first and the last selected column. */
  onSpan: (first: number, last: number) => void;
}

const HEIGHT = 120;

/** Stacked columns over time. Each has a tooltip; a click or a drag selects columns. */
export function Columns({ label, series, columns, format, ends, onSpan }: Props) {
  const { chosen, handlers } = useSpan(columns.length, onSpan);
  const sums = columns.map(({ values }) => values.reduce((sum, value) => sum + value, 0));
  const largest = Math.max(...sums, 0);
  const width = 100 / Math.max(1, columns.length);
  return (
    <figure className={styles.chart}>
      <div className={styles.top}>
        <span>{format(largest)}</span>
        <ul className={styles.keys}>
          {series.map(({ name, color }) => (
            <li key={name}>
              <span className="swatch" style={{ background: color }} />
              {name}
            </li>
          ))}
        </ul>
      </div>
      <div
        className={styles.area}
        role="group"
        aria-label={`${label}: at most ${format(largest)}. Arrow keys choose a column, with Shift several; Enter opens them.`}
        tabIndex={0}
        {...handlers}
      >
        <svg
          className={styles.plot}
          viewBox={`0 0 100 ${HEIGHT}`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          {chosen && (
            <rect
              x={chosen.first * width}
              y="0"
              width={(chosen.last - chosen.first + 1) * width}
              height={HEIGHT}
              className={styles.chosen}
            />
          )}
          <line x1="0" x2="100" y1="0.5" y2="0.5" className={styles.grid} />
          <line x1="0" x2="100" y1={HEIGHT / 2} y2={HEIGHT / 2} className={styles.grid} />
          <line x1="0" x2="100" y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} className={styles.axis} />
          {columns.map((column, at) => (
            <Stack
              key={at}
              column={column}
              series={series}
              left={at * width}
              width={width}
              largest={largest}
              format={format}
            />
          ))}
        </svg>
      </div>
      <div className={styles.ends}>
        <span aria-hidden="true">{ends[0]}</span>
        <span role="status">
          {chosen && sumOf(columns.slice(chosen.first, chosen.last + 1), series, format)}
        </span>
        <span aria-hidden="true">{ends[1]}</span>
      </div>
    </figure>
  );
}

/** The totals of the selected columns, e.g. "14:00 to 16:30: completed 5, failed 1". */
function sumOf(
  columns: readonly ChartColumn[],
  series: readonly Series[],
  format: (value: number) => string,
): string {
  const parts = series.map(({ name }, at) => {
    const sum = columns.reduce((total, { values }) => total + (values[at] ?? 0), 0);
    return `${name} ${format(sum)}`;
  });
  return `${columns[0]?.from} to ${columns.at(-1)?.to}: ${parts.join(", ")}`;
}

interface StackProps extends Pick<Props, "series" | "format"> {
  column: ChartColumn;
  left: number;
  width: number;
  largest: number;
}

function Stack({ column, series, left, width, largest, format }: StackProps) {
  let bottom = HEIGHT;
  return (
    <g className={styles.column}>
      <title>{sumOf([column], series, format)}</title>
      {/* The full height of the column shows the tooltip, not only the filled part. */}
      <rect x={left} y="0" width={width} height={HEIGHT} className={styles.target} />
      {series.map(({ name, color }, at) => {
        const value = column.values[at] ?? 0;
        const height = largest > 0 ? (value / largest) * (HEIGHT - 2) : 0;
        bottom -= height;
        return (
          <rect
            key={name}
            x={left + width * 0.12}
            y={bottom}
            width={width * 0.76}
            height={height}
            fill={color}
          />
        );
      })}
    </g>
  );
}
