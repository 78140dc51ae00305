import type { Artifact, Forge } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { seriesOf } from "../jobs/metric-series";
import type { Series } from "../ui/curves";

/** The name of the metrics file that the reference training handler writes next to the model. */
const METRICS_FILE = "metrics.json";
const MAX_FILE_BYTES = 2_000_000;
const MAX_EVALUATIONS = 20;

export interface TrainingCurves {
  series: Series[];
  /** The unit of x. */
  unit: "steps" | "seconds";
}

/**
 * Reads the curves of a checkpoint's training from its metrics.json, which is kept as long as the
 * checkpoint's other files. Without this file, reads the metrics that the job reported, which Forge
 * keeps for 30 days.
 */
export function useTrainingCurves(artifact: Artifact) {
  const forge = useForge();
  return useQuery({
    queryKey: ["artifacts", "curves", artifact.artifact_id],
    queryFn: async ({ signal }): Promise<TrainingCurves> => {
      const stored = await readStored(forge, artifact, signal);
      if (stored.length > 0) return { series: stored, unit: "steps" };
      const { job_id: jobId, attempt } = artifact.manifest;
      if (!jobId) return { series: [], unit: "seconds" };
      const reported = await forge.jobs.metrics(jobId, { attempt, max_points: 1_000 }, { signal });
      return { series: seriesOf(reported), unit: "seconds" };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

async function readStored(
  forge: Forge,
  { artifact_id: id, manifest, deleted_at }: Artifact,
  signal: AbortSignal,
): Promise<Series[]> {
  const file = manifest.files.find(({ path }) => path === METRICS_FILE);
  if (!file || file.size_bytes > MAX_FILE_BYTES || deleted_at) return [];
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of forge.artifacts.readFile(id, METRICS_FILE, { signal })) {
    text += decoder.decode(chunk, { stream: true });
  }
  return curvesOf(text);
}

/**
 * Reads each field whose name ends with `_curve` and whose value is a list of [step, value].
 * Ignores all other content: a tenant can write anything into the file.
 */
function curvesOf(text: string): Series[] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return [];
  }
  if (typeof content !== "object" || content === null) return [];
  return Object.entries(content).flatMap(([name, value]) => {
    if (!name.endsWith("_curve") || !Array.isArray(value)) return [];
    const points = value.flatMap((each: unknown) => {
      const [x, y] = Array.isArray(each) ? (each as unknown[]) : [];
      // JSON.parse reads 1e999 as Infinity.
      return Number.isFinite(x) && Number.isFinite(y) ? [{ x: Number(x), y: Number(y) }] : [];
    });
    return points.length > 0 ? [{ name: name.replace(/_curve$/, ""), points }] : [];
  });
}

/** The newest evaluations of a checkpoint, from its lineage. */
export function useEvaluations(checkpointId: string) {
  const forge = useForge();
  return useQuery({
    queryKey: ["artifacts", "evaluations", checkpointId],
    queryFn: async ({ signal }): Promise<Artifact[]> => {
      const { nodes } = await forge.artifacts.lineage(checkpointId, { signal });
      const ids = nodes
        .filter(({ type, kind, id }) => isEvaluation(type, kind) && id !== checkpointId)
        .sort((one, other) => (other.created_at ?? "").localeCompare(one.created_at ?? ""))
        .slice(0, MAX_EVALUATIONS)
        .map(({ id }) => id);
      const found = await Promise.all(ids.map((id) => forge.artifacts.get(id, { signal })));
      // The lineage also contains indirect descendants.
      return found.filter(({ source_artifacts: sources }) => sources.includes(checkpointId));
    },
  });
}

const isEvaluation = (type: string, kind: string | undefined): boolean =>
  type === "artifact" && kind === "evaluation_report";
