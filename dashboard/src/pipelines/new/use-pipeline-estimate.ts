import { useQuery } from "@tanstack/react-query";
import { useForge } from "../../api/context";
import { useDebounced } from "../../ui/use-debounced";
import type { TemplateBody } from "./draft";

const TYPING_MS = 350;

/** Requests the cost estimate shortly after the last change, but not while a field is invalid. */
export function usePipelineEstimate(body: TemplateBody, isComplete: boolean) {
  const forge = useForge();
  // Debounces the JSON text instead of `body`: `body` is a new object in each render, so each
  // render would restart the delay.
  const content = useDebounced(isComplete ? JSON.stringify(body) : undefined, TYPING_MS);
  const { data, error, isFetching, isPlaceholderData } = useQuery({
    queryKey: ["pipelines", "estimate", content],
    enabled: content !== undefined && isComplete,
    queryFn: ({ signal }) =>
      forge.pipelines.estimate(JSON.parse(content ?? "{}") as TemplateBody, { signal }),
    placeholderData: (before) => before,
    staleTime: 30_000,
    // The key starts with "pipelines", so each pipeline event would refetch the estimate. Most of
    // these events don't change it, because it is based on past jobs.
    meta: { live: false },
  });
  return {
    estimate: isComplete ? data : undefined,
    error: isComplete ? error : null,
    isOld: isFetching || isPlaceholderData,
  };
}
