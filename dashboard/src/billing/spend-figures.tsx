import type { BillingSummary } from "@forge/sdk";
import { Figure, Figures } from "../ui/figure";
import { formatNumber, formatUsd, plural } from "../ui/format";
import { Money } from "../ui/money";
import { Skeleton } from "../ui/skeleton";

/** The month's cost, the part of it for live deployments, the forecast, and the billed usage. */
export function SpendFigures({
  summary,
  isNow,
}: {
  summary: BillingSummary | undefined;
  isNow: boolean;
}) {
  const { estimated_invoice: invoice, storage } = summary ?? {};
  const hasStorage = (storage?.amount_usd ?? 0) > 0;
  return (
    <Figures>
      <Figure
        name={isNow ? "Spent so far" : "Spent"}
        value={<Usd usd={invoice?.total_usd} />}
        note={
          summary &&
          [
            `${formatUsd(summary.total_cost_usd)} in ${plural(summary.records, "record")}`,
            hasStorage && `${formatUsd(storage?.amount_usd)} storage`,
          ]
            .filter(Boolean)
            .join(", ")
        }
      />
      <Figure
        name="Still accruing"
        value={<Usd usd={summary?.accruing_usd} />}
        note="Part of what is spent: live deployments so far"
      />
      <Figure
        name={isNow ? "Forecast" : "Final"}
        value={<Usd usd={summary?.forecast_usd} />}
        note={
          isNow
            ? "At the month's end: jobs and storage at this month's pace, deployments until then"
            : "What the month's invoice comes to"
        }
      />
      <Figure
        name="Billed use"
        value={
          summary ? (
            `${formatNumber(summary.gpu_hours_total, 2)} GPU h`
          ) : (
            <Skeleton width="5ch" height={24} />
          )
        }
        note={
          summary &&
          `${formatNumber(summary.tokens_total)} tokens; ${formatNumber(summary.unbilled_gpu_hours, 2)} GPU h of attempts that did not complete, not billed`
        }
      />
    </Figures>
  );
}

const Usd = ({ usd }: { usd: number | undefined }) =>
  usd === undefined ? <Skeleton width="5ch" height={24} /> : <Money usd={usd} />;
