import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import type { JobType } from "../jobs/declared-types";
import { useDebounced } from "../ui/use-debounced";
import type { Body } from "./form-values";

const TYPING_MS = 350;

/** Requests the cost estimate shortly after the last change, but not while a field is invalid. */
export function useEstimate(type: JobType, body: Body, isComplete: boolean) {
  const forge = useForge();
  // Debounces the JSON text instead of `body`: `body` is a new object in each render, so each
  // render would restart the delay.
  const content = useDebounced(isComplete ? JSON.stringify(body) : undefined, TYPING_MS);
  const { data, error, isFetching, isPlaceholderData } = useQuery({
    queryKey: ["billing", "estimate", type, content],
    enabled: content !== undefined && isComplete,
    queryFn: ({ signal }) => forge.billing.estimate(type, JSON.parse(content ?? "{}"), { signal }),
    placeholderData: (before) => (before?.job_type === type ? before : undefined),
    staleTime: 30_000,
  });
  return {
    estimate: isComplete ? data : undefined,
    error: isComplete ? error : null,
    isOld: isFetching || isPlaceholderData,
  };
}
