import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv2020 from "ajv/dist/2020";
import type { ApiClient } from "../../dev/api-client";
import { checkoutRoot } from "../../dev/stack/paths";

export interface Manifest extends Record<string, unknown> {
  artifact_type: string;
  artifact_id: string;
  files: { path: string; size_bytes: number; sha256: string }[];
  source_artifacts: string[];
  verified: boolean;
  contradictions: { field: string; claimed: unknown; measured: unknown }[];
}

export interface Artifact {
  artifact_id: string;
  artifact_type: string;
  kind: string;
  uri: string;
  size_bytes: number | null;
  deleted_at: string | null;
  manifest: Manifest;
}

export interface Lineage {
  nodes: { id: string; type: string; kind?: string; deleted_at?: string }[];
  edges: { from: string; to: string; relation: string }[];
  truncated: boolean;
}

export const sha256 = (bytes: Buffer | string): string =>
  createHash("sha256").update(bytes).digest("hex");

/** Downloads a file. The body is returned as bytes. */
export async function download(
  api: ApiClient,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; bytes: Buffer }> {
  const response = await fetch(`${api.baseUrl}${path}`, {
    headers: { "x-service-api-key": api.key, ...headers },
    redirect: "manual",
  });
  return {
    status: response.status,
    headers: response.headers,
    bytes: Buffer.from(await response.arrayBuffer()),
  };
}

/** The only artifact of a job. */
export async function artifactOf(api: ApiClient, jobId: string): Promise<Artifact> {
  const { artifacts } = await api.get<{ artifacts: Artifact[] }>(`/api/jobs/${jobId}/artifacts`);
  const [artifact] = artifacts;
  if (!artifact || artifacts.length !== 1)
    throw new Error(`${jobId} has ${artifacts.length} artifacts`);
  return artifact;
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });

/** Validates a manifest against its published schema. @returns the errors; none if it is valid. */
export function manifestErrors(manifest: Manifest): string[] {
  const name = `manifest-${manifest.artifact_type}.schema.json`;
  const schema = JSON.parse(readFileSync(join(checkoutRoot(), "docs", "schemas", name), "utf8"));
  const validate = ajv.compile(schema);
  validate(manifest);
  return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
}
