import type { Forge, Listing } from "@forge/sdk";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useForge } from "./context";
import { POLL_MS } from "./queries";

const PAGE_SIZE = 50;

interface Options {
  /** How often to refetch, in ms. False: never. */
  pollMs?: number | false;
  enabled?: boolean;
}

/**
 * A list from the API, page by page, newest first. Refetches the pages that are shown.
 *
 * @param key names the list and its filters, for the cache.
 */
export function useList<T>(
  key: readonly unknown[],
  listing: (forge: Forge, pageSize: number) => Listing<T>,
  { pollMs = POLL_MS, enabled = true }: Options = {},
) {
  const forge = useForge();
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => listing(forge, PAGE_SIZE).page(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ has_more, next_cursor }) =>
      has_more ? (next_cursor ?? undefined) : undefined,
    refetchInterval: pollMs,
    enabled,
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
