import type { Pipeline } from "@forge/sdk";
import {
  type QueryClient,
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

/**
 * The jobs of all its runs. The pipeline itself does not contain when a worker started each job.
 */
export function usePipelineJobs(pipeline: Pipeline) {
  const forge = useForge();
  const isLive = !isOver(pipeline);
  return useQuery({
    // `isLive` in the key: fetches once more when the pipeline has ended.
    queryKey: ["pipelines", "jobs", pipeline.pipeline_id, pipeline.run, isLive],
    queryFn: async () => {
      const jobs = [];
      for await (const job of forge.jobs.list({
        pipeline_id: pipeline.pipeline_id,
        limit: MAX_JOBS,
        pageSize: 200,
      })) {
        jobs.push(plainJob(job));
      }
      return jobs;
    },
    placeholderData: (before) => before,
    refetchInterval: isLive ? POLL_MS : false,
  });
}

/** A change of a pipeline. Shows the response at once; the dialog shows an error. */
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
      showAtOnce(queries, pipeline);
      toast.ok(done(values));
    },
    onSettled: () => queries.invalidateQueries({ queryKey: keyOf(pipelineId) }),
  });
}

function showAtOnce(queries: QueryClient, pipeline: Pipeline): void {
  const key = keyOf(pipeline.pipeline_id);
  // Responses to changes lack the forecast and the definition: keep both until the next read.
  queries.setQueryData<Pipeline>(key, (before) => ({ ...before, ...pipeline }));
}
