import { useQuery } from "@tanstack/react-query";
import { useForge } from "../../api/context";
import { useDebounced } from "../../ui/use-debounced";
import type { TemplateBody } from "./draft";

const TYPING_MS = 350;

/** Requests the cost estimate shortly after the last change, but not while a field is invalid. */
export function usePipelineEstimate(body: TemplateBody, isComplete: boolean) {
  const forge = useForge();
  // JSON text, because each render makes a new object, which would restart the wait.
  const content = useDebounced(isComplete ? JSON.stringify(body) : undefined, TYPING_MS);
  const { data, error, isFetching, isPlaceholderData } = useQuery({
    queryKey: ["pipelines", "estimate", content],
    enabled: content !== undefined && isComplete,
    queryFn: ({ signal }) =>
      forge.pipelines.estimate(JSON.parse(content ?? "{}") as TemplateBody, { signal }),
    placeholderData: (before) => before,
    staleTime: 30_000,
    // Events of pipelines don't refetch the estimate: it changes only when jobs end.
    meta: { live: false },
  });
  return {
    estimate: isComplete ? data : undefined,
    error: isComplete ? error : null,
    isOld: isFetching || isPlaceholderData,
  };
}
