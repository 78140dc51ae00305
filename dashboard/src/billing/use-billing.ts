import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useForge, useSigned } from "../api/context";
import { useList } from "../api/use-list";
import { saveFile } from "../ui/download";
import { toast } from "../ui/toasts";
import type { BillingSearch } from "./search";

/** Poll interval for the current month. Past months are not polled: their bills rarely change. */
const NOW_POLL_MS = 10_000;

const pollOf = (isNow: boolean): number | false => (isNow ? NOW_POLL_MS : false);

export function useSummary(period: string, isNow: boolean) {
  const forge = useForge();
  return useQuery({
    queryKey: ["billing", "summary", period],
    queryFn: ({ signal }) => forge.billing.summary(period, {}, { signal }),
    refetchInterval: pollOf(isNow),
  });
}

export function useDaily(period: string, isNow: boolean) {
  const forge = useForge();
  return useQuery({
    queryKey: ["billing", "daily", period],
    queryFn: ({ signal }) => forge.billing.daily(period, {}, { signal }),
    refetchInterval: pollOf(isNow),
  });
}

export function useRates() {
  const forge = useForge();
  return useQuery({
    queryKey: ["billing", "rates"],
    queryFn: ({ signal }) => forge.billing.rates({}, { signal }),
    staleTime: 60_000,
  });
}

/**
 * A month's records. For the current month, the list is polled, because jobs add new records and
 * the cost of an active deployment grows.
 */
export function useRecords(period: string, isNow: boolean, search: BillingSearch) {
  // Without the filter `user_id`, an admin would see the records of all tenants. The sums on the
  // page cover only the admin's own tenant.
  const { userId } = useSigned().session;
  const filters = { period, job_type: search.job_type, sort: search.sort, user_id: userId };
  return useList(
    ["billing", "records", filters],
    (forge, pageSize) => forge.billing.records({ ...filters, pageSize }),
    { pollMs: pollOf(isNow) },
  );
}

export function useSetBudget() {
  const forge = useForge();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ cap, warning }: { cap: number | null; warning?: number | null }) =>
      forge.billing.setBudget(cap, warning === undefined ? {} : { warning_usd: warning }),
    onSuccess: (_, { cap }) =>
      toast.ok(cap === null ? "There is no cap any more." : "The budget is set."),
    onSettled: () => queries.invalidateQueries({ queryKey: ["billing"] }),
  });
}

/** Saves a month's invoice lines as a file. */
export function useExport(period: string) {
  const forge = useForge();
  return useMutation({
    mutationFn: () => forge.billing.export(period),
    onSuccess: (csv) =>
      saveFile(new Blob([csv], { type: "text/csv;charset=utf-8" }), `forge-billing-${period}.csv`),
    onError: (error) => toast.refused("The file was not made", error),
  });
}
