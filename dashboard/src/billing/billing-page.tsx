import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Download } from "lucide-react";
import { Button } from "../ui/button";
import { ErrorBanner, Notice } from "../ui/error-banner";
import { Page } from "../ui/page";
import { useNow } from "../ui/ticker";
import styles from "./billing-page.module.css";
import { BreakdownSection } from "./breakdown-section";
import { BudgetPanel } from "./budget-panel";
import { DailySection } from "./daily-section";
import { InvoiceSection } from "./invoice-section";
import { MonthPicker } from "./month-picker";
import { periodAt, periodName } from "./period";
import { RatesSection } from "./rates-section";
import { RecordsSection } from "./records-section";
import type { BillingSearch } from "./search";
import { SpendFigures } from "./spend-figures";
import { useDaily, useExport, useRates, useSummary } from "./use-billing";

const route = getRouteApi("/billing");

export function BillingPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const current = useNow(periodAt);
  const period = search.period ?? current;
  const isNow = period === current;
  const summary = useSummary(period, isNow);
  const daily = useDaily(period, isNow);
  const rates = useRates();
  const file = useExport(period);
  const change = (part: Partial<BillingSearch>): void =>
    void navigate({
      to: "/billing",
      search: { ...search, ...part },
      replace: true,
      resetScroll: false,
    });
  const error = summary.error ?? daily.error ?? rates.error;
  const retry = (): void => {
    for (const query of [summary, daily, rates]) if (query.error) void query.refetch();
  };
  return (
    <Page
      title="Billing"
      shows="own"
      actions={
        <>
          <MonthPicker
            period={period}
            current={current}
            // The URL omits the current month. So a saved link shows the month that is current when
            // the link is opened.
            onChange={(next) => change({ period: next === current ? "" : next, record: "" })}
          />
          <Button
            icon={<Download size={14} />}
            busy={file.isPending}
            onClick={() => file.mutate()}
            aria-label={`Download ${periodName(period)} as CSV`}
          >
            CSV
          </Button>
        </>
      }
    >
      {error !== null && (
        <ErrorBanner what="The bill could not be loaded" error={error} onRetry={retry} />
      )}
      {period > current && <Notice tone="neutral">This month has not begun yet.</Notice>}
      <SpendFigures summary={summary.data} isNow={isNow} />
      <div className={styles.columns}>
        <div className={styles.main}>
          <DailySection daily={daily.data} />
          <BreakdownSection
            summary={summary.data}
            by={search.by ?? "type"}
            onChange={(by) => change({ by })}
          />
        </div>
        <aside className={styles.side} aria-label="Budget, invoice and prices">
          {isNow && summary.data && <BudgetPanel budget={summary.data.budget} />}
          {summary.data && <InvoiceSection summary={summary.data} isNow={isNow} />}
          <RatesSection rates={rates.data} />
        </aside>
      </div>
      <RecordsSection period={period} isNow={isNow} search={search} onChange={change} />
    </Page>
  );
}
