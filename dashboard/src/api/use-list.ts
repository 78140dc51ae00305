import type { Forge, Listing, Page } from "@forge/sdk";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useForge } from "./context";
import { POLL_MS } from "./queries";

export const PAGE_SIZE = 50;

/** Options for a query that reads a list page by page, by cursor. */
export const PAGING = {
  initialPageParam: undefined as string | undefined,
  getNextPageParam: ({ has_more, next_cursor }: Page<unknown>) =>
    has_more ? (next_cursor ?? undefined) : undefined,
};

interface Options {
  /** How often to refetch, in ms. False: never. */
  pollMs?: number | false;
}

export interface PagedList<Row> {
  /** Undefined while the first page is loading. */
  rows: Row[] | undefined;
  error: unknown;
  retry: () => void;
  hasMore: boolean;
  loadMore: () => void;
  isLoadingMore: boolean;
}

/**
 * Reads a list from the API page by page, in the API's order. A refetch reads all shown pages.
 * @param key names the list and its filters in the cache.
 */
export function useList<T>(
  key: readonly unknown[],
  listing: (forge: Forge, pageSize: number) => Listing<T>,
  { pollMs = POLL_MS }: Options = {},
): PagedList<T> {
  const forge = useForge();
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => listing(forge, PAGE_SIZE).page(pageParam),
    ...PAGING,
    refetchInterval: pollMs,
  });
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.items), [query.data]);
  return {
    rows,
    error: query.error,
    retry: () => void query.refetch(),
    hasMore: query.hasNextPage,
    loadMore: () => void query.fetchNextPage(),
    isLoadingMore: query.isFetchingNextPage,
  };
}
