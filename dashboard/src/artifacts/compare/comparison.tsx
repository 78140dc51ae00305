import type { Artifact } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { ArrowLeftRight } from "lucide-react";
import { useId } from "react";
import { buttonClass } from "../../ui/button";
import { IdText } from "../../ui/copy";
import { cx } from "../../ui/cx";
import { Checkbox } from "../../ui/field";
import { ABSENT, formatBytes, formatMeasured, formatNumber, plural } from "../../ui/format";
import { ArtifactLink } from "../../ui/links";
import { Time } from "../../ui/time";
import { Toolbar } from "../../ui/toolbar";
import { kindName } from "../search";
import styles from "./compare-page.module.css";
import { compareManifests, type Group, type Row } from "./differences";

interface Props {
  a: Artifact;
  b: Artifact;
  showsEqual: boolean;
  onShowEqual: (isShown: boolean) => void;
}

export function Comparison({ a, b, showsEqual, onShowEqual }: Props) {
  const groups = compareManifests(a.manifest, b.manifest);
  const rows = groups.flatMap((group) => group.rows);
  const different = rows.filter(({ isEqual }) => !isEqual).length;
  const shown = showsEqual
    ? groups
    : groups
        .map(({ title, rows: all }) => ({ title, rows: all.filter(({ isEqual }) => !isEqual) }))
        .filter((group) => group.rows.length > 0);
  return (
    <>
      <Toolbar
        end={
          <Link
            to="/artifacts/compare"
            search={(before) => ({ ...before, a: b.artifact_id, b: a.artifact_id })}
            replace
            className={buttonClass()}
          >
            <ArrowLeftRight size={14} />
            Swap
          </Link>
        }
      >
        <span role="status">
          {plural(different, "difference")}, {formatNumber(rows.length - different)} equal
        </span>
        <Checkbox
          label="Show what is equal"
          checked={showsEqual}
          onChange={({ target }) => onShowEqual(target.checked)}
        />
      </Toolbar>
      <table className={styles.table} aria-label="Comparison">
        <thead>
          <tr>
            <th scope="col" className={styles.name}>
              <span className={styles.quiet}>Field</span>
            </th>
            <Side artifact={a} />
            <Side artifact={b} />
            <th scope="col" className={styles.change}>
              <span className={styles.quiet}>Change</span>
            </th>
          </tr>
        </thead>
        {shown.map((group) => (
          <GroupRows key={group.title} group={group} />
        ))}
      </table>
      {shown.length === 0 && <p className={styles.quiet}>Nothing differs but their ids.</p>}
    </>
  );
}

const Side = ({
  artifact: { artifact_id: id, name, kind, created_at },
}: {
  artifact: Artifact;
}) => (
  <th scope="col">
    <ArtifactLink id={id}>{name ?? <IdText id={id} />}</ArtifactLink>
    <span className={styles.about}>
      {kindName(kind)}, <Time at={created_at} />
    </span>
  </th>
);

function GroupRows({ group: { title, rows } }: { group: Group }) {
  const id = useId();
  return (
    <tbody aria-labelledby={id}>
      <tr>
        <th id={id} scope="rowgroup" colSpan={4} className={styles.group}>
          {title}
        </th>
      </tr>
      {rows.map((row) => (
        <tr key={row.name} className={cx(!row.isEqual && styles.different)}>
          <th scope="row" className={styles.name}>
            {!row.isEqual && (
              <span className={styles.mark} role="img" aria-label="differs">
                ≠
              </span>
            )}
            {row.name}
          </th>
          <td>{shownValue(row.a)}</td>
          <td>{shownValue(row.b)}</td>
          <td className={styles.change}>{changeOf(row)}</td>
        </tr>
      ))}
    </tbody>
  );
}

function shownValue(value: unknown): string {
  if (value === undefined || value === null) return ABSENT;
  if (typeof value === "number") return formatMeasured(value);
  if (typeof value === "string") return value;
  if (isFile(value)) return `${formatBytes(value.size_bytes)}, ${value.sha256.slice(0, 12)}…`;
  return JSON.stringify(value);
}

const isFile = (value: unknown): value is { size_bytes: number; sha256: string } =>
  typeof value === "object" && value !== null && "sha256" in value && "size_bytes" in value;

/** The difference from the first number to the second. */
function changeOf({ a, b, isEqual }: Row): string {
  if (isEqual || typeof a !== "number" || typeof b !== "number") return "";
  const change = b - a;
  const sign = change > 0 ? "+" : "−";
  const share = a === 0 ? "" : ` (${sign}${formatNumber(Math.abs(change / a) * 100, 1)} %)`;
  return `${sign}${formatMeasured(Math.abs(change))}${share}`;
}
