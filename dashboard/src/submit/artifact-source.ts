import type { Artifact } from "@forge/sdk";
import type { JobType } from "../jobs/search";
import { formatBytes } from "../ui/format";

/** What a field takes of an artifact. */
export interface ArtifactSource {
  /** "artifact": of any type. */
  type: "dataset" | "checkpoint" | "artifact";
  takes: "id" | "uri";
}

/** Fields that name an artifact. In a training `model_id` is a base model, not a checkpoint. */
export function sourceOf(type: JobType, field: string): ArtifactSource | undefined {
  switch (field) {
    case "dataset_id":
    case "benchmark":
      return { type: "dataset", takes: "id" };
    case "dataset_uri":
      return { type: "dataset", takes: "uri" };
    case "checkpoint_id":
      return { type: "checkpoint", takes: "id" };
    case "model_id":
      return type === "train" ? undefined : { type: "checkpoint", takes: "id" };
    default:
      return undefined;
  }
}

export interface Offer {
  /** What the field gets. */
  value: string;
  title: string;
  note: string;
  at: string;
}

const TABLE = /\.(jsonl|csv|parquet)$/;

/** An id is one offer; a URI is that of a table, so an artifact with two tables is two. */
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

function tablesOf({ manifest }: Artifact): string[] {
  const files = (manifest as { files?: { path?: unknown }[] }).files ?? [];
  return files.flatMap(({ path }) => (typeof path === "string" && TABLE.test(path) ? [path] : []));
}
