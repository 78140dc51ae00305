import type { Forge, Job } from "@forge/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { useForge } from "../api/context";
import type { JobType } from "../jobs/declared-types";
import { plainJob } from "../jobs/job-data";
import { toast } from "../ui/toasts";
import type { Body } from "./form-values";

export interface Submission {
  type: JobType;
  body: Body;
}

type Submit = (body: Body, options: { idempotencyKey: string }) => Promise<Job>;

/** Returns the SDK's method that submits jobs of the type. The server validates the body. */
const submit = (forge: Forge, type: JobType): Submit => (forge[type] as Submit).bind(forge);

/**
 * Submits a job and opens its page. The Idempotency-Key stays the same until the content changes.
 * So a second click, or a retry after a lost response, does not create a second job.
 */
export function useSubmission() {
  const forge = useForge();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const keyOf = useIdempotencyKey();
  return useMutation({
    mutationFn: ({ type, body }: Submission) =>
      submit(forge, type)(body, { idempotencyKey: keyOf(JSON.stringify([type, body])) }),
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

/** Returns the same key until the content changes. */
export function useIdempotencyKey(): (content: string) => string {
  const last = useRef<{ content: string; key: string }>(undefined);
  return (content) => {
    if (last.current?.content !== content) last.current = { content, key: newKey() };
    return last.current.key;
  };
}

/** A random key. Does not use crypto.randomUUID, which pages over plain HTTP do not have. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `ui-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
