import type { Forge, Job } from "@forge/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { useForge } from "../api/context";
import { plainJob } from "../jobs/job-data";
import type { JobType } from "../jobs/search";
import { toast } from "../ui/toasts";
import type { Body } from "./form-values";

export interface Submission {
  type: JobType;
  body: Body;
}

type Submit = (body: Body, options: { idempotencyKey: string }) => Promise<Job>;

const submitters = (forge: Forge): Record<JobType, Submit> => ({
  generate: (body, options) => forge.generate(body, options),
  audit: (body, options) => forge.audit({ dataset_uri: "", ...body }, options),
  distill: (body, options) => forge.distill(body, options),
  train: (body, options) => forge.train(body, options),
  evaluate: (body, options) => forge.evaluate(body, options),
  deploy: (body, options) => forge.deploy(body, options),
});

/**
 * Submits a job and goes to it. The same content keeps its Idempotency-Key: a second click, or another try
 * after a lost answer, leads to the one job that the first has made. Changed content is another job.
 */
export function useSubmission() {
  const forge = useForge();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const keyOf = useIdempotencyKey();
  return useMutation({
    mutationFn: ({ type, body }: Submission) =>
      submitters(forge)[type](body, { idempotencyKey: keyOf(JSON.stringify([type, body])) }),
    onSuccess: async (job) => {
      queries.setQueryData(["jobs", "one", job.job_id], plainJob(job));
      for (const { message } of job.warnings ?? [])
        toast.ok(`Submitted, with a warning: ${message}`);
      if (!job.warnings?.length) toast.ok("The job is submitted.");
      await navigate({ to: "/jobs/$jobId", params: { jobId: job.job_id } });
      await queries.invalidateQueries({ queryKey: ["jobs", "head"] });
    },
  });
}

/** A key for a content, the same each time until the content changes. */
export function useIdempotencyKey(): (content: string) => string {
  const last = useRef<{ content: string; key: string }>(undefined);
  return (content) => {
    if (last.current?.content !== content) last.current = { content, key: newKey() };
    return last.current.key;
  };
}

/** Also where the page came over plain HTTP, which has no crypto.randomUUID. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `ui-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
