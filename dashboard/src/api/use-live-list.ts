import type { Page } from "@forge/sdk";
import { useInfiniteQuery, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { POLL_MS } from "./queries";
import { PAGING, type PagedList } from "./use-list";

/**
 * The maximum number of rows to poll one by one. Only shown rows that are not on the first page are
 * polled in this way.
 */
const MAX_SINGLE = 20;

/** How to read a list and its single rows. Lists are sorted newest first. */
export interface ListSource<Row> {
  /**
   * The first part of the cache keys, e.g. "jobs". A row's own page also uses the key
   * `[thing, "one", id]`, so it shares the cached row with this list.
   */
  thing: string;
  filters: object;
  readPage: (after: string | undefined) => Promise<Page<Row>>;
  readOne: (id: string) => Promise<Row>;
  idOf: (row: Row) => string;
  createdAt: (row: Row) => string;
  /** Whether the row is in a final state and will not change any more. */
  isFinal: (row: Row) => boolean;
}

export interface LiveList<Row> extends PagedList<Row> {
  /**
   * The number of new rows that are not shown yet. If new rows appeared without a call of
   * `showNew`, the other rows would move.
   */
  newCount: number;
  showNew: () => void;
}

/**
 * A list that updates itself. Shown rows keep their place. The first page is polled. New rows are
 * shown after a call of `showNew`.
 */
export function useLiveList<Row>(source: ListSource<Row>): LiveList<Row> {
  const queries = useQueryClient();
  const listKey = [source.thing, "list", source.filters];
  const headKey = [source.thing, "head", source.filters];
  const list = useInfiniteQuery({
    queryKey: listKey,
    queryFn: async ({ pageParam }) => {
      const page = await source.readPage(pageParam);
      // Stores the page for `head` (below), which would otherwise request the same page again.
      if (pageParam === undefined) queries.setQueryData(headKey, page);
      return page;
    },
    ...PAGING,
    staleTime: Number.POSITIVE_INFINITY,
    // Events refetch only `head` and `singles`. A refetch of this query would move rows.
    meta: { live: false },
  });
  const head = useQuery({
    queryKey: headKey,
    queryFn: () => source.readPage(undefined),
    refetchInterval: POLL_MS,
    enabled: list.isFetched,
  });
  const shown = useMemo(() => list.data?.pages.flatMap(({ items }) => items), [list.data]);
  const firstPageRows = head.data?.items;
  const singles = useQueries({
    queries: rowsOutsideFirstPage(source, shown, firstPageRows).map((row) => ({
      queryKey: [source.thing, "one", source.idOf(row)],
      queryFn: () => source.readOne(source.idOf(row)),
      refetchInterval: POLL_MS,
    })),
  });
  const latest = new Map(firstPageRows?.map((row) => [source.idOf(row), row]));
  for (const { data } of singles) if (data) latest.set(source.idOf(data), data);
  const added = addedRows(source, shown, firstPageRows);
  const showNew = (): void => {
    // If all rows of the first page are new, the next page may have more new rows. In this case,
    // reloads the list.
    if (head.data?.has_more && added.length === firstPageRows?.length) {
      void queries.resetQueries({ queryKey: listKey, exact: true });
      return;
    }
    queries.setQueryData<typeof list.data>(listKey, (data) => {
      const [first, ...rest] = data?.pages ?? [];
      if (!data || !first) return data;
      return { ...data, pages: [{ ...first, items: [...added, ...first.items] }, ...rest] };
    });
  };
  // If the list opens with rows from the cache, newer rows are shown as soon as they arrive. They
  // don't disturb the user, who has not begun to read.
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

/**
 * The rows of the first page that are not shown yet, newest first. Rows older than the last shown
 * one are left out: they come with the next page.
 */
function addedRows<Row>(
  { idOf, createdAt }: ListSource<Row>,
  shown: Row[] | undefined,
  firstPageRows: Row[] | undefined,
): Row[] {
  if (!shown || !firstPageRows) return [];
  const known = new Set(shown.map(idOf));
  const last = shown.at(-1);
  const oldest = last === undefined ? "" : createdAt(last);
  return firstPageRows.filter((row) => !known.has(idOf(row)) && createdAt(row) >= oldest);
}

/** The shown rows that may still change and that the first page does not contain. */
function rowsOutsideFirstPage<Row>(
  { idOf, isFinal }: ListSource<Row>,
  shown: Row[] | undefined,
  firstPageRows: Row[] | undefined,
): Row[] {
  const known = new Set(firstPageRows?.map(idOf));
  return (shown ?? []).filter((row) => !known.has(idOf(row)) && !isFinal(row)).slice(0, MAX_SINGLE);
}
