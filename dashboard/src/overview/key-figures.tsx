import type { BillingSummary, JobCounts, Worker } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { useSigned } from "../api/context";
import { Figure, Figures } from "../ui/figure";
import { formatNumber, formatUsd } from "../ui/format";
import { Skeleton } from "../ui/skeleton";
import { useDayAgo } from "./use-day-ago";
import { REASONS } from "./waiting-reasons";

interface Props {
  counts: JobCounts | undefined;
  month: BillingSummary | undefined;
  workers: readonly Worker[] | undefined;
}

const LOADING = <Skeleton width="56px" height={22} />;
const WAITING = ["pending", "provisioning_worker", "assigned"] as const;
/** Takes the place of a missing note, so that all figures have the same height. */
const BLANK = "\u00a0";

export function KeyFigures({ counts, month, workers }: Props) {
  const { session } = useSigned();
  const dayAgo = useDayAgo();
  const by = counts?.by_status;
  const waiting = by && WAITING.reduce((sum, status) => sum + by[status], 0);
  const count = (status: string): number =>
    workers?.filter((each) => each.status === status).length ?? 0;
  const troubled = count("error") + count("dead");
  return (
    <Figures>
      <Figure
        name={
          <Link to="/jobs" search={{ status: ["running"] }}>
            Running
          </Link>
        }
        value={by ? formatNumber(by.running) : LOADING}
        note={largest(typesOf(counts, "running"), (type) => type)}
      />
      <Figure
        name={
          <Link to="/jobs" search={{ status: [...WAITING] }}>
            Waiting
          </Link>
        }
        value={waiting === undefined ? LOADING : formatNumber(waiting)}
        note={largest(counts?.by_pending_code, (code) => REASONS[code] ?? code)}
      />
      <Figure
        name={
          <Link to="/jobs" search={{ status: ["completed"], ended_after: dayAgo }}>
            Completed in 24 h
          </Link>
        }
        value={by ? formatNumber(by.completed) : LOADING}
        note={largest(typesOf(counts, "completed"), (type) => type)}
      />
      <Figure
        name={
          <Link to="/jobs" search={{ status: ["failed"], ended_after: dayAgo }}>
            Failed in 24 h
          </Link>
        }
        value={by ? formatNumber(by.failed) : LOADING}
        note={largest(counts?.by_error_code, (code) => code.replaceAll("_", " "))}
      />
      <Figure
        name={<Link to="/workers">Workers busy</Link>}
        value={workers ? `${count("busy")} / ${workers.length}` : LOADING}
        note={troubled > 0 ? `${troubled} in trouble` : BLANK}
      />
      <Figure
        name={
          session.scope === "admin"
            ? `This month (UTC), only ${session.userId}`
            : "This month (UTC)"
        }
        value={month ? formatUsd(month.estimated_invoice.total_usd) : LOADING}
        note={month ? `Forecast ${formatUsd(month.forecast_usd)}${capText(month)}` : BLANK}
      />
    </Figures>
  );
}

function typesOf(counts: JobCounts | undefined, status: "running" | "completed") {
  const types = Object.entries(counts?.by_job_type ?? {});
  return Object.fromEntries(types.map(([type, by]) => [type, by[status]]));
}

/**
 * The largest part and the sum of the others, e.g. "generate 12, others 3". If there are only two
 * parts, names both.
 */
function largest(parts: Record<string, number> | undefined, name: (key: string) => string): string {
  const [first, second, ...rest] = Object.entries(parts ?? {})
    .filter(([, count]) => count > 0)
    .sort(([, one], [, other]) => other - one);
  if (!first) return BLANK;
  const show = ([key, count]: [string, number]): string => `${name(key)} ${formatNumber(count)}`;
  if (!second) return show(first);
  if (rest.length === 0) return `${show(first)}, ${show(second)}`;
  const others = rest.reduce((sum, [, count]) => sum + count, second[1]);
  return `${show(first)}, others ${formatNumber(others)}`;
}

const capText = ({ budget }: BillingSummary): string =>
  budget?.cap_usd == null ? "" : `, cap ${formatUsd(budget.cap_usd)}`;
