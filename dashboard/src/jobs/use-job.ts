import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useForge } from "../api/context";
import { toast } from "../ui/toasts";
import { isFinished, plainJob } from "./job-data";

/** Poll interval for one job. Lists are polled less often. */
const JOB_POLL_MS = 2_000;

export function useJob(jobId: string) {
  const forge = useForge();
  return useQuery({
    queryKey: ["jobs", "one", jobId],
    queryFn: async ({ signal }) => plainJob(await forge.jobs.get(jobId, { signal })),
    refetchInterval: ({ state }) => (state.data && isFinished(state.data) ? false : JOB_POLL_MS),
  });
}

export function useAttempts(jobId: string, isLive: boolean) {
  const forge = useForge();
  return useQuery({
    // `isLive` is part of the query key: when the job ends, the new key causes a last fetch.
    queryKey: ["jobs", "attempts", jobId, isLive],
    queryFn: ({ signal }) => forge.jobs.attempts(jobId, { signal }),
    placeholderData: (before) => before,
    refetchInterval: isLive ? JOB_POLL_MS : false,
  });
}

export function useCancelJob(jobId: string) {
  const forge = useForge();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => forge.jobs.cancel(jobId),
    onSuccess: (job) => {
      queries.setQueryData(["jobs", "one", jobId], plainJob(job));
      toast.ok(
        job.isFinal
          ? "The job is cancelled."
          : "The worker was asked to stop. The job ends within 20 s.",
      );
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["jobs"] }),
  });
}

export function useRetryJob(jobId: string) {
  const forge = useForge();
  const queries = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => forge.jobs.retry(jobId),
    onSuccess: async (job) => {
      toast.ok("A new job with the same payload is submitted.");
      await navigate({ to: "/jobs/$jobId", params: { jobId: job.job_id } });
    },
    onError: (error) => toast.refused("The job was not retried", error),
    onSettled: () => queries.invalidateQueries({ queryKey: ["jobs", "head"] }),
  });
}
