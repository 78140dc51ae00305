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

/** Polls a running pipeline more often than a list. */
const RUNNING_POLL_MS = 2_000;
/** The maximum number of steps of a pipeline, and so of jobs of one run. */
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

/** The jobs of all runs. A job has the time at which a worker started it; a step does not. */
export function usePipelineJobs(pipeline: Pipeline) {
  const forge = useForge();
  const isLive = !isOver(pipeline);
  return useQuery({
    // `isLive` in the key: fetches once more when the pipeline has ended.
    queryKey: ["pipelines", "jobs", pipeline.pipeline_id, pipeline.run, isLive],
    queryFn: async () => {
      const filters = { pipeline_id: pipeline.pipeline_id, limit: MAX_JOBS, pageSize: 200 };
      return (await forge.jobs.list(filters).toArray()).map(plainJob);
    },
    placeholderData: (before) => before,
    refetchInterval: isLive ? POLL_MS : false,
  });
}

/** A mutation that changes a pipeline. The page shows the response at once, the dialog an error. */
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
