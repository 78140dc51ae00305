/** Input of a lineage graph: artifacts with their sources, and the jobs that made them. */
export interface LineageFacts {
  artifacts: {
    id: string;
    kind: string;
    name: string | null;
    createdAt: string;
    deletedAt: string | null;
    sourceArtifacts: string[];
    sourceJobs: string[];
    /** Sources that are not registered artifacts: names of models or teachers, and URIs. */
    externals: string[];
  }[];
  jobs: {
    id: string;
    jobType: string;
    status: string;
    pipelineId: string | null;
    createdAt: string;
  }[];
}

export interface LineageNode {
  id: string;
  type: "artifact" | "job" | "pipeline" | "external";
  kind?: string;
  name?: string;
  status?: string;
  created_at?: string;
  deleted_at?: string;
}

export interface LineageEdge {
  from: string;
  to: string;
  relation: "input" | "output" | "step";
}

/** Edges follow the data: source → job → artifact. A pipeline points to the jobs of its steps. */
export function drawLineage({ artifacts, jobs }: LineageFacts): {
  nodes: LineageNode[];
  edges: LineageEdge[];
} {
  const nodes = new Map<string, LineageNode>();
  const edges = new Map<string, LineageEdge>();
  const link = (from: string, to: string, relation: LineageEdge["relation"]): void => {
    edges.set(JSON.stringify([from, to]), { from, to, relation });
  };
  for (const { id, kind, name, createdAt, deletedAt } of artifacts) {
    nodes.set(id, {
      id,
      type: "artifact",
      kind,
      ...(name === null ? {} : { name }),
      created_at: createdAt,
      ...(deletedAt === null ? {} : { deleted_at: deletedAt }),
    });
  }
  for (const { id, jobType, status, pipelineId, createdAt } of jobs) {
    nodes.set(id, { id, type: "job", kind: jobType, status, created_at: createdAt });
    if (pipelineId === null) continue;
    nodes.set(pipelineId, { id: pipelineId, type: "pipeline" });
    link(pipelineId, id, "step");
  }
  for (const artifact of artifacts) {
    for (const job of artifact.sourceJobs.filter((id) => nodes.has(id))) {
      link(job, artifact.id, "output");
      for (const source of artifact.sourceArtifacts) {
        if (nodes.has(source)) link(source, job, "input");
      }
      for (const id of artifact.externals) {
        if (!nodes.has(id)) nodes.set(id, { id, type: "external" });
        link(id, job, "input");
      }
    }
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}
