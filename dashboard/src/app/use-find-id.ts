import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useForge } from "../api/context";
import { isNotFound } from "../api/errors";

export interface Found {
  id: string;
  title: string;
  note: string;
  go: () => Promise<void> | void;
}

/** As long as the shortest id that people make, and no word of a page's name. */
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{2,127}$/;

/** Looks for things with this id, of every kind that has a page. */
export function useFindId(text: string): { items: Found[]; isLooking: boolean } {
  const forge = useForge();
  const navigate = useNavigate();
  const id = text.trim();
  const { data = [], isFetching } = useQuery({
    queryKey: ["find", id],
    enabled: ID.test(id),
    queryFn: async ({ signal }) => {
      const jobs = await forge.jobs.get(id, { signal }).catch(nothing);
      return jobs ? [{ kind: "job" as const, note: `${jobs.job_type} job` }] : [];
    },
    staleTime: 10_000,
  });
  const items = data.map(({ note }) => ({
    id: `job ${id}`,
    title: id,
    note,
    go: () => navigate({ to: "/jobs/$jobId", params: { jobId: id } }),
  }));
  return { items, isLooking: isFetching };
}

/** What is not there, or can't have this id, is simply not found. */
function nothing(error: unknown): undefined {
  if (isNotFound(error)) return undefined;
  throw error;
}
