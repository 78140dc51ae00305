import styles from "./columns.module.css";

interface ChartColumn {
  /** What the column stands for, e.g. "14:00 to 14:30". */
  label: string;
  /** From the bottom up, in the order of the series. */
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
  /** How a value is shown. */
  format: (value: number) => string;
  /** Below the first and the last column. */
  ends: readonly [string, string];
}

const HEIGHT = 120;

/** Stacked columns over time. Each column's numbers are in its tooltip. */
export function Columns({ label, series, columns, format, ends }: Props) {
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
              <span className={styles.key} style={{ background: color }} />
              {name}
            </li>
          ))}
        </ul>
      </div>
      <svg
        className={styles.plot}
        viewBox={`0 0 100 ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: at most ${format(largest)}`}
      >
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
      <div className={styles.ends} aria-hidden="true">
        <span>{ends[0]}</span>
        <span>{ends[1]}</span>
      </div>
    </figure>
  );
}

function Stack({
  column,
  series,
  left,
  width,
  largest,
  format,
}: {
  column: ChartColumn;
  series: readonly Series[];
  left: number;
  width: number;
  largest: number;
  format: (value: number) => string;
}) {
  const parts = series.map(({ name }, at) => `${name} ${format(column.values[at] ?? 0)}`);
  let bottom = HEIGHT;
  return (
    <g className={styles.column}>
      <title>{`${column.label}: ${parts.join(", ")}`}</title>
      {/* All of the column's height shows the tooltip, not only what is filled. */}
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
