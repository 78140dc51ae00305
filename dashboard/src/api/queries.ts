import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { isKeyRefused, isTransient } from "./errors";
import { Freshness } from "./freshness";

/** How often a visible page refetches data that may have changed. */
export const POLL_MS = 5_000;

const MAX_RETRIES = 2;

/** A cache for one session. @param onKeyRefused is called when Forge refuses the key. */
export function createQueries(onKeyRefused: () => void): {
  queries: QueryClient;
  freshness: Freshness;
} {
  const freshness = new Freshness();
  const onError = (error: unknown): void => {
    if (isKeyRefused(error)) onKeyRefused();
  };
  const queries = new QueryClient({
    queryCache: new QueryCache({ onError, onSuccess: () => freshness.note() }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 1_000,
        // Also send requests while the browser is offline: Forge may run on this machine.
        networkMode: "always",
        retry: (failures, error) => isTransient(error) && failures < MAX_RETRIES,
        retryDelay: (failures) => 500 * 2 ** failures,
      },
      mutations: { networkMode: "always" },
    },
  });
  return { queries, freshness };
}
