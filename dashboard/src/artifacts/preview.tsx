import type { TablePreview } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { ErrorBanner, Notice } from "../ui/error-banner";
import { Select } from "../ui/field";
import { ABSENT, formatNumber, plural } from "../ui/format";
import { Stack } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";
import styles from "./preview.module.css";

interface Props {
  artifactId: string;
  /** Paths of the artifact's tables. */
  paths: readonly string[];
  path: string | undefined;
  onPath: (path: string) => void;
}

/** Shows the first rows of a table. Above them, shows statistics of each column, over all rows. */
export function Preview({ artifactId, paths, path, onPath }: Props) {
  const forge = useForge();
  const chosen = path && paths.includes(path) ? path : paths[0];
  const { data, error, refetch } = useQuery({
    queryKey: ["artifacts", "preview", artifactId, chosen],
    queryFn: ({ signal }) => forge.artifacts.preview(artifactId, chosen, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Stack gap={8}>
      {paths.length > 1 && (
        <Select
          className={styles.path}
          aria-label="Table"
          value={chosen}
          onChange={({ target }) => onPath(target.value)}
        >
          {paths.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </Select>
      )}
      {error && <ErrorBanner what="There is no preview" error={error} onRetry={refetch} />}
      {data ? <Rows preview={data} /> : !error && <SkeletonLines count={8} />}
    </Stack>
  );
}

function Rows({ preview }: { preview: TablePreview }) {
  const { columns, rows, num_rows, truncated } = preview;
  return (
    <>
      <p className="quiet">
        {plural(num_rows, "row")}, {plural(columns.length, "column")}; the first {rows.length} are
        shown.
      </p>
      {truncated && (
        <Notice tone="neutral">Rows were left out: together they are too large.</Notice>
      )}
      <div className={styles.scroller} tabIndex={0} role="region" aria-label="Preview of the table">
        <table className={styles.table}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.name} scope="col">
                  <span className={styles.name}>{column.name}</span>
                  <span className={styles.type}>{column.dtype}</span>
                  <dl className={styles.statistics}>
                    {statisticsOf(column).map(([name, value]) => (
                      <div key={name}>
                        <dt>{name}</dt>
                        <dd title={value}>{value}</dd>
                      </div>
                    ))}
                  </dl>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at}>
                {columns.map(({ name }) => (
                  <td key={name} title={shown(row[name])}>
                    {shown(row[name])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

type ColumnStatistics = TablePreview["columns"][number];

function statisticsOf(column: ColumnStatistics): [string, string][] {
  const { null_count, approx_distinct, min, max, mean, mean_length } = column;
  const entries: [string, string | null][] = [
    ["null", formatNumber(null_count)],
    ["distinct", approx_distinct === null ? null : `≈ ${formatNumber(approx_distinct)}`],
    ["min", min === null ? null : shown(min)],
    ["max", max === null ? null : shown(max)],
    ["mean", mean === null ? null : formatNumber(mean, 4)],
    ["length", mean_length == null ? null : `${formatNumber(mean_length, 1)} on average`],
  ];
  return entries.filter((entry): entry is [string, string] => entry[1] !== null);
}

/** A value of the table as text; objects and lists as JSON. */
function shown(value: unknown): string {
  if (value === null || value === undefined) return ABSENT;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
