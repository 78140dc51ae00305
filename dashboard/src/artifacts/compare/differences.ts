import type { Manifest } from "@forge/sdk";
import { scoresOf } from "../scores";

export interface Row {
  name: string;
  /** Undefined if the artifact has no such field. */
  a: unknown;
  b: unknown;
  isEqual: boolean;
}

export interface Group {
  title: string;
  rows: Row[];
}

/** Fields that identify an artifact and its job. The comparison leaves them out. */
const UNIQUE_FIELDS = [
  "artifact_id",
  "created_at",
  "eval_id",
  "deployment_id",
  "job_id",
  "source_jobs",
  "attempt",
];
/** Fields that other groups show. The group "Facts" leaves them out. */
const GROUPED = ["job_params", "metrics", "scores", "quality", "schema", "files"];
/** Fields that do not describe the artifact itself. The comparison leaves them out. */
const IGNORED_FIELDS = ["schema_version", "measured", "contradictions", "verified", "user_id"];

type Values = Record<string, unknown>;

/** The fields of two manifests in groups. Empty groups are left out. */
export function compareManifests(a: Manifest, b: Manifest): Group[] {
  const group = (title: string, valuesOf: (manifest: Manifest) => Values): Group => ({
    title,
    rows: rowsOf(valuesOf(a), valuesOf(b)),
  });
  return [
    group("Facts", factsOf),
    group("Parameters", ({ job_params }) => flatten(job_params)),
    group("Metrics and scores", numbersOf),
    group("Columns", columnsOf),
    group("Files", ({ files }) =>
      Object.fromEntries(
        files.map(({ path, size_bytes, sha256 }) => [path, { size_bytes, sha256 }]),
      ),
    ),
  ].filter(({ rows }) => rows.length > 0);
}

function rowsOf(a: Values, b: Values): Row[] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.map((name) => ({
    name,
    a: ownProperty(a, name),
    b: ownProperty(b, name),
    isEqual: JSON.stringify(ownProperty(a, name)) === JSON.stringify(ownProperty(b, name)),
  }));
}

/** Reads own properties only: a tenant may use a name such as "constructor". */
const ownProperty = (values: Values, name: string): unknown =>
  Object.hasOwn(values, name) ? values[name] : undefined;

const factsOf = (manifest: Manifest): Values =>
  Object.fromEntries(
    Object.entries(flatten(manifest, [...UNIQUE_FIELDS, ...GROUPED, ...IGNORED_FIELDS])).filter(
      ([, value]) => value !== null && value !== "",
    ),
  );

const numbersOf = (manifest: Manifest): Values =>
  flatten({ ...manifest.metrics, ...scoresOf(manifest) });

const columnsOf = (manifest: Manifest): Values =>
  manifest.artifact_type === "dataset"
    ? Object.fromEntries(manifest.schema.columns.map(({ name, dtype }) => [name, dtype]))
    : {};

/** Flattens nested objects to dotted names. Lists stay whole. */
function flatten(values: object, without: readonly string[] = []): Values {
  const entries = Object.entries(values).filter(([name]) => !without.includes(name));
  return Object.fromEntries(
    entries.flatMap(([name, value]): [string, unknown][] =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? Object.entries(flatten(value)).map(([rest, each]) => [`${name}.${rest}`, each])
        : [[name, value]],
    ),
  );
}
