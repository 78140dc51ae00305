import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useForge } from "../../api/context";
import { describeError } from "../../api/errors";
import type { JobType } from "../../jobs/declared-types";
import { toast } from "../../ui/toasts";
import type { TemplateName } from "../search";
import { type Draft, EMPTY_DRAFT, fieldPathOf, readDraft, type StepDraft, stepOf } from "./draft";

/** The form's content, its problems, and its submission. */
export function useNewPipeline(template: TemplateName) {
  const forge = useForge();
  const navigate = useNavigate();
  const [draft, setDraft] = useState<Draft>(EMPTY_DRAFT);
  const [visited, setVisited] = useState<ReadonlySet<string>>(new Set());
  const [tries, setTries] = useState(0);
  const { body, problems } = readDraft(template, draft);
  const submission = useMutation({
    mutationFn: () => forge.pipelines.create(body),
    onSuccess: async (pipeline) => {
      toast.ok("The pipeline is submitted.");
      await navigate({
        to: "/pipelines/$pipelineId",
        params: { pipelineId: pipeline.pipeline_id },
      });
    },
  });
  const refusal = submission.error ? describeError(submission.error) : undefined;
  const refusedAt = refusal?.param === undefined ? undefined : fieldPathOf(refusal.param, body);
  const change = (next: Partial<Draft>): void => {
    setDraft((before) => ({ ...before, ...next }));
    // Drops the server's error: it was about the previous content.
    if (submission.isError) submission.reset();
  };
  return {
    draft,
    body,
    change,
    changeStep: (type: JobType, next: Partial<StepDraft>): void =>
      change({ steps: { ...draft.steps, [type]: { ...stepOf(draft, type), ...next } } }),
    markVisited: (place: string): void => setVisited((before) => new Set([...before, place])),
    /**
     * The error message to show at a field. A server error is shown at once. Other problems are
     * shown after the focus has left the field, or after the user has tried to submit.
     */
    problemAt: (place: string): string | undefined => {
      if (place === refusedAt) return refusal?.atField;
      return tries > 0 || visited.has(place) ? problems[place] : undefined;
    },
    submit: (): void => {
      setTries(tries + 1);
      if (Object.keys(problems).length === 0) submission.mutate();
    },
    tries,
    isComplete: Object.keys(problems).length === 0,
    problemCount: tries > 0 ? Object.keys(problems).length : 0,
    isBusy: submission.isPending,
    /** A server error that belongs to no field. */
    error: refusedAt === undefined ? submission.error : null,
    isWrong: submission.isError || Object.keys(problems).length > 0,
  };
}
