import type { Pipeline } from "@forge/sdk";
import {
  type UseMutationResult,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useForge } from "../api/context";
import { POLL_MS } from "../api/queries";
import { plainJob } from "../jobs/job-data";
import { toast } from "../ui/toasts";
import { isOver } from "./pipeline-state";

/** Poll interval for one running pipeline. Lists are polled less often. */
const RUNNING_POLL_MS = 2_000;
/**
 * The number of jobs to read, newest first. A pipeline has at most this many steps, so all jobs of
 * its latest run are among them.
 */
const MAX_JOBS = 500;

const keyOf = (pipelineId: string) => ["pipelines", "one", pipelineId] as const;

export function usePipeline(pipelineId: string) {
  const forge = useForge();
  return useQuery({
    queryKey: keyOf(pipelineId),
    queryFn: ({ signal }) => forge.pipelines.get(pipelineId, { signal }),
    refetchInterval: ({ state }) => {
      if (!state.data) return RUNNING_POLL_MS;
      if (isOver(state.data)) return false;
      return state.data.status === "running" ? RUNNING_POLL_MS : POLL_MS;
    },
  });
}

/**
 * The jobs of the pipeline's latest and earlier runs. The timeline needs the jobs, because the
 * pipeline's steps do not contain the time when a worker started the job.
 */
export function usePipelineJobs(pipeline: Pipeline) {
  const forge = useForge();
  const isLive = !isOver(pipeline);
  return useQuery({
    // `isLive` is part of the query key: when the pipeline ends, the new key causes a last fetch.
    queryKey: ["pipelines", "jobs", pipeline.pipeline_id, pipeline.run, isLive],
    queryFn: async () => {
      const filters = { pipeline_id: pipeline.pipeline_id, limit: MAX_JOBS, pageSize: 200 };
      return (await forge.jobs.list(filters).toArray()).map(plainJob);
    },
    placeholderData: (before) => before,
    refetchInterval: isLive ? POLL_MS : false,
  });
}

/** A mutation that changes a pipeline. On success, the page shows the returned pipeline at once. */
export function usePipelineChange<Values>({
  pipelineId,
  call,
  done,
}: {
  pipelineId: string;
  call: (values: Values) => Promise<Pipeline>;
  done: (values: Values) => string;
}): UseMutationResult<Pipeline, Error, Values> {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: call,
    onSuccess: (pipeline, values) => {
      // The response lacks the forecast and the definition: keep both until the next read.
      queries.setQueryData<Pipeline>(keyOf(pipelineId), (before) => ({ ...before, ...pipeline }));
      toast.ok(done(values));
    },
    onSettled: () => queries.invalidateQueries({ queryKey: keyOf(pipelineId) }),
  });
}
