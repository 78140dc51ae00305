import type { Page } from "@forge/sdk";
import { useInfiniteQuery, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { POLL_MS } from "./queries";

/** Rows asked for one by one, because the first page no longer shows their change. */
const MAX_SINGLE = 20;

/** Where the rows of a list come from, newest first. */
export interface ListSource<Row> {
  /** What the cache's keys begin with: a row's page reads it as `[thing, "one", id]`. */
  thing: string;
  filters: object;
  readPage: (after: string | undefined) => Promise<Page<Row>>;
  readOne: (id: string) => Promise<Row>;
  idOf: (row: Row) => string;
  createdAt: (row: Row) => string;
  /** It will not change any more. */
  isFinal: (row: Row) => boolean;
}

export interface LiveList<Row> {
  /** Undefined while the first page is loaded. */
  rows: Row[] | undefined;
  /** How many are not shown yet, so that rows don't move under the reader. */
  newCount: number;
  showNew: () => void;
  hasMore: boolean;
  loadMore: () => void;
  isLoadingMore: boolean;
  error: unknown;
  retry: () => void;
}

/**
 * A list that updates by itself. Rows that are shown stay where they are and are patched in place; the
 * first page is read again every few seconds, and what is new in it waits for `showNew`.
 */
export function useLiveList<Row>(source: ListSource<Row>): LiveList<Row> {
  const queries = useQueryClient();
  const listKey = [source.thing, "list", source.filters];
  const headKey = [source.thing, "head", source.filters];
  const list = useInfiniteQuery({
    queryKey: listKey,
    queryFn: async ({ pageParam }) => {
      const page = await source.readPage(pageParam);
      // Else it would be asked for twice when the list is opened.
      if (pageParam === undefined) queries.setQueryData(headKey, page);
      return page;
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ has_more, next_cursor }) =>
      has_more ? (next_cursor ?? undefined) : undefined,
    staleTime: Number.POSITIVE_INFINITY,
    // Read again by the first page and the single rows only: rows stay where they are.
    meta: { live: false },
  });
  const head = useQuery({
    queryKey: headKey,
    queryFn: () => source.readPage(undefined),
    refetchInterval: POLL_MS,
    enabled: list.isFetched,
  });
  const shown = useMemo(() => list.data?.pages.flatMap(({ items }) => items), [list.data]);
  const fresh = head.data?.items;
  const singles = useQueries({
    queries: unseen(source, shown, fresh).map((row) => ({
      queryKey: [source.thing, "one", source.idOf(row)],
      queryFn: () => source.readOne(source.idOf(row)),
      refetchInterval: POLL_MS,
    })),
  });
  const latest = new Map(fresh?.map((row) => [source.idOf(row), row]));
  for (const { data } of singles) if (data) latest.set(source.idOf(data), data);
  const added = addedRows(source, shown, fresh);
  const showNew = (): void => {
    // More are new than a page has: the list begins anew, else those between were missing.
    if (head.data?.has_more && added.length === fresh?.length) {
      void queries.resetQueries({ queryKey: listKey, exact: true });
      return;
    }
    queries.setQueryData<typeof list.data>(listKey, (data) => {
      const [first, ...rest] = data?.pages ?? [];
      if (!data || !first) return data;
      return { ...data, pages: [{ ...first, items: [...added, ...first.items] }, ...rest] };
    });
  };
  // Nobody reads a row yet when the page is opened: what is new is shown at once.
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current || !shown) return;
    if (!list.isFetchedAfterMount && !head.isFetchedAfterMount) return;
    isFirst.current = false;
    if (!list.isFetchedAfterMount && added.length > 0) showNew();
  });
  return {
    rows: shown?.map((row) => latest.get(source.idOf(row)) ?? row),
    newCount: added.length,
    showNew,
    hasMore: list.hasNextPage,
    loadMore: () => void list.fetchNextPage(),
    isLoadingMore: list.isFetchingNextPage,
    error: list.error ?? head.error,
    retry: () => {
      void list.refetch();
      void head.refetch();
    },
  };
}

/** Newer than what is shown, newest first. */
function addedRows<Row>(
  { idOf, createdAt }: ListSource<Row>,
  shown: Row[] | undefined,
  fresh: Row[] | undefined,
): Row[] {
  if (!shown || !fresh) return [];
  const known = new Set(shown.map(idOf));
  const last = shown.at(-1);
  const oldest = last === undefined ? "" : createdAt(last);
  return fresh.filter((row) => !known.has(idOf(row)) && createdAt(row) >= oldest);
}

/** Rows that may still change, and that the first page does not have. */
function unseen<Row>(
  { idOf, isFinal }: ListSource<Row>,
  shown: Row[] | undefined,
  fresh: Row[] | undefined,
): Row[] {
  const known = new Set(fresh?.map(idOf));
  return (shown ?? []).filter((row) => !known.has(idOf(row)) && !isFinal(row)).slice(0, MAX_SINGLE);
}
