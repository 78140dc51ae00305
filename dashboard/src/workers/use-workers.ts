import type { Worker } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { POLL_MS } from "../api/queries";

/**
 * The maximum number of workers to load. If this many were loaded, the workers page shows a notice
 * that it lists only the newest workers.
 */
export const MAX_WORKERS = 2_000;

/**
 * Loads all workers instead of one page, because the browser sorts them: workers with problems come
 * first. During the first load, returns the workers loaded so far.
 */
export function useWorkers() {
  const forge = useForge();
  return useQuery({
    queryKey: ["workers", "all"],
    queryFn: async ({ signal, queryKey, client }) => {
      const isFirst = client.getQueryData(queryKey) === undefined;
      const workers: Worker[] = [];
      for await (const { items } of forge.workers
        .list({ limit: MAX_WORKERS }, { signal })
        .pages()) {
        workers.push(...items);
        if (isFirst) client.setQueryData(queryKey, [...workers]);
      }
      return workers;
    },
    refetchInterval: POLL_MS,
  });
}
