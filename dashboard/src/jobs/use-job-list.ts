import type { Page } from "@forge/sdk";
import { useInfiniteQuery, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { useForge } from "../api/context";
import { POLL_MS } from "../api/queries";
import { isFinished, type JobData, plainJob } from "./job-data";
import type { JobsSearch } from "./search";

const PAGE_SIZE = 50;
/** Rows asked for one by one, because a list no longer shows their change. */
const MAX_SINGLE = 20;

export interface JobList {
  /** Undefined while the first page is loaded. */
  jobs: JobData[] | undefined;
  /** Jobs that are not shown yet, so that rows don't move under the reader. */
  newCount: number;
  showNew: () => void;
  hasMore: boolean;
  loadMore: () => void;
  isLoadingMore: boolean;
  error: unknown;
  retry: () => void;
}

/**
 * The jobs that match the filters. Rows that are shown stay where they are and are patched in place; the
 * first page is asked for again and again, and what is new in it waits for `showNew`.
 */
export function useJobList(search: JobsSearch): JobList {
  const forge = useForge();
  const queries = useQueryClient();
  const filters = useMemo(() => apiFilters(search), [search]);
  const readPage = async (after: string | undefined): Promise<Page<JobData>> => {
    const page = await forge.jobs.list({ ...filters, pageSize: PAGE_SIZE }).page(after);
    return { ...page, items: page.items.map(plainJob) };
  };
  const listKey = useMemo(() => ["jobs", "list", filters], [filters]);
  const list = useInfiniteQuery({
    queryKey: listKey,
    queryFn: ({ pageParam }) => readPage(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ has_more, next_cursor }) =>
      has_more ? (next_cursor ?? undefined) : undefined,
    staleTime: Number.POSITIVE_INFINITY,
    // An event must not move the rows.
    meta: { live: false },
  });
  const head = useQuery({
    queryKey: ["jobs", "head", filters],
    queryFn: () => readPage(undefined),
    refetchInterval: POLL_MS,
  });
  const shown = useMemo(() => list.data?.pages.flatMap(({ items }) => items), [list.data]);
  const fresh = head.data?.items;
  const left = useMemo(() => unseen(shown, fresh), [shown, fresh]);
  const singles = useQueries({
    queries: left.map((job) => ({
      queryKey: ["jobs", "one", job.job_id],
      queryFn: async () => plainJob(await forge.jobs.get(job.job_id)),
      refetchInterval: POLL_MS,
    })),
  });
  const patched = useMemo(() => {
    const byId = new Map(fresh?.map((job) => [job.job_id, job]));
    for (const { data } of singles) if (data) byId.set(data.job_id, data);
    return shown?.map((job) => byId.get(job.job_id) ?? job);
  }, [shown, fresh, singles]);
  const added = useMemo(() => addedJobs(shown, fresh), [shown, fresh]);
  const showNew = (): void => {
    queries.setQueryData<typeof list.data>(listKey, (data) => {
      const [first, ...rest] = data?.pages ?? [];
      if (!data || !first) return data;
      return { ...data, pages: [{ ...first, items: [...added, ...first.items] }, ...rest] };
    });
  };
  // Coming back to the page, nobody reads a row yet: what is new is shown at once.
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current || !head.isFetchedAfterMount || !shown) return;
    isFirst.current = false;
    if (added.length > 0) showNew();
  });
  const retry = (): void => {
    void list.refetch();
    void head.refetch();
  };
  return {
    jobs: patched,
    newCount: added.length,
    showNew,
    hasMore: list.hasNextPage,
    loadMore: () => void list.fetchNextPage(),
    isLoadingMore: list.isFetchingNextPage,
    error: list.error ?? head.error,
    retry,
  };
}

/** Newer than what is shown, newest first. */
function addedJobs(shown: JobData[] | undefined, fresh: JobData[] | undefined): JobData[] {
  if (!shown || !fresh) return [];
  const known = new Set(shown.map(({ job_id }) => job_id));
  const oldest = shown.at(-1)?.created_at ?? "";
  return fresh.filter((job) => !known.has(job.job_id) && job.created_at >= oldest);
}

/** Rows that may still change, and that the first page does not have. */
function unseen(shown: JobData[] | undefined, fresh: JobData[] | undefined): JobData[] {
  const known = new Set(fresh?.map(({ job_id }) => job_id));
  return (shown ?? [])
    .filter((job) => !known.has(job.job_id) && !isFinished(job))
    .slice(0, MAX_SINGLE);
}

const DAY_MS = 86_400_000;

function apiFilters({ from, to, ...rest }: JobsSearch) {
  return {
    ...rest,
    ...(from ? { created_after: new Date(`${from}T00:00:00`).toISOString() } : {}),
    // To the end of that day.
    ...(to
      ? { created_before: new Date(Date.parse(`${to}T00:00:00`) + DAY_MS).toISOString() }
      : {}),
  };
}
