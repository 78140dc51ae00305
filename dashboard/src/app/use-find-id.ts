import type { Forge } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useForge } from "../api/context";
import { isNotFound } from "../api/errors";

export interface Found {
  id: string;
  title: string;
  note: string;
  go: () => Promise<void> | void;
}

/**
 * Matches a text that may be an id: it has a digit, `_` or `-`. The names of pages have none of
 * these characters, so typing a page's name sends no requests. As a result, a worker with the id
 * `alpha` is not found.
 */
const ID = /^(?=.*[\d_-])[A-Za-z0-9][A-Za-z0-9._-]{2,127}$/;

const KINDS = {
  job: async (forge: Forge, id: string) => `${(await forge.jobs.get(id)).job_type} job`,
  worker: async (forge: Forge, id: string) => `${(await forge.workers.get(id)).status} worker`,
  artifact: async (forge: Forge, id: string) =>
    (await forge.artifacts.get(id)).kind.replaceAll("_", " "),
  pipeline: async (forge: Forge, id: string) =>
    `${(await forge.pipelines.get(id)).status.replaceAll("_", " ")} pipeline`,
  deployment: async (forge: Forge, id: string) =>
    `${(await forge.deployments.get(id)).status} deployment`,
};
type Kind = keyof typeof KINDS;

/**
 * The kinds of objects that an id may name. Forge's own ids start with their kind. An id that a
 * user chose may name a worker or an artifact.
 */
function kindsOf(id: string): Kind[] {
  if (id.startsWith("job_")) return ["job"];
  if (id.startsWith("wkr_")) return ["worker"];
  if (id.startsWith("pipe_")) return ["pipeline"];
  if (id.startsWith("dep_")) return ["deployment", "artifact"];
  return ["worker", "artifact"];
}

/** Looks up an id among all kinds of objects that it may name. */
export function useFindId(text: string): { items: Found[]; isLooking: boolean; error: unknown } {
  const forge = useForge();
  const navigate = useNavigate();
  const id = text.trim();
  const {
    data = [],
    isFetching,
    error,
  } = useQuery({
    queryKey: ["find", id],
    enabled: ID.test(id),
    queryFn: async () => {
      const found = await Promise.all(kindsOf(id).map((kind) => findByKind(forge, kind, id)));
      return found.filter((each) => each !== undefined);
    },
    staleTime: 10_000,
  });
  const goTo = {
    job: () => navigate({ to: "/jobs/$jobId", params: { jobId: id } }),
    worker: () => navigate({ to: "/workers/$workerId", params: { workerId: id } }),
    artifact: () => navigate({ to: "/artifacts/$artifactId", params: { artifactId: id } }),
    pipeline: () => navigate({ to: "/pipelines/$pipelineId", params: { pipelineId: id } }),
    deployment: () => navigate({ to: "/deployments/$deploymentId", params: { deploymentId: id } }),
  };
  const items = data.map(({ kind, note }) => ({
    id: `${kind} ${id}`,
    title: id,
    note,
    go: goTo[kind],
  }));
  return { items, isLooking: isFetching, error };
}

/** Returns the object's kind and a note about it; undefined if there is no such object. */
async function findByKind(forge: Forge, kind: Kind, id: string) {
  try {
    return { kind, note: await KINDS[kind](forge, id) };
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
