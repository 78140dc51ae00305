import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { POLL_MS } from "../api/queries";

/** As many as a fleet has; beyond, the list says that it is cut. */
export const MAX_WORKERS = 2_000;

/** The whole fleet: it is sorted by trouble, which needs all of it. */
export function useWorkers() {
  const forge = useForge();
  return useQuery({
    queryKey: ["workers", "all"],
    queryFn: ({ signal }) => forge.workers.list({ limit: MAX_WORKERS }, { signal }).toArray(),
    refetchInterval: POLL_MS,
  });
}
