import type { Artifact } from "@forge/sdk";
import { JOB_TYPE_FACTS, type JobType } from "../jobs/declared-types";
import { formatBytes } from "../ui/format";

/** Which artifacts a field accepts, and whether it takes their id or a URI. */
export interface ArtifactSource {
  /** "artifact" accepts any type. */
  type: "dataset" | "checkpoint" | "artifact";
  takes: "id" | "uri";
}

/**
 * The artifacts that a field accepts; undefined if the field accepts none. In some job types,
 * `model_id` is an alias of `checkpoint_id` and accepts checkpoints. In other job types, `model_id`
 * accepts no artifacts.
 */
export function sourceOf(type: JobType, field: string): ArtifactSource | undefined {
  switch (JOB_TYPE_FACTS[type].aliases[field] ?? field) {
    case "dataset_id":
    case "benchmark":
      return { type: "dataset", takes: "id" };
    case "dataset_uri":
      return { type: "dataset", takes: "uri" };
    case "checkpoint_id":
      return { type: "checkpoint", takes: "id" };
    default:
      return undefined;
  }
}

/** An entry in the list of an ArtifactPicker. */
export interface Offer {
  /** The value that the field gets if the user picks the entry. */
  value: string;
  title: string;
  note: string;
  at: string;
}

const TABLE = /\.(jsonl|csv|parquet)$/;

/**
 * The artifact's entries in the list. If the field takes an id, there is one entry. If the field
 * takes a URI, there is one entry for each table of the artifact.
 */
export function offersOf(artifact: Artifact, { takes }: ArtifactSource): Offer[] {
  const { artifact_id, name, kind, size_bytes, created_at } = artifact;
  const title = name ?? artifact_id;
  const note = [kind.replaceAll("_", " "), formatBytes(size_bytes)].join(" · ");
  if (takes === "id") return [{ value: artifact_id, title, note, at: created_at }];
  return tablesOf(artifact).map((path) => ({
    value: `${artifact.uri.replace(/\/+$/, "")}/${path}`,
    title,
    note: `${path} · ${note}`,
    at: created_at,
  }));
}

/** The paths of the artifact's tables, which are its JSON Lines, CSV and Parquet files. */
export function tablesOf({ manifest }: Artifact): string[] {
  const files = (manifest as { files?: { path?: unknown }[] }).files ?? [];
  return files.flatMap(({ path }) => (typeof path === "string" && TABLE.test(path) ? [path] : []));
}
