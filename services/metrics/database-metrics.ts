import { setImmediate as afterOthers } from "node:timers/promises";
import { Gauge, Registry } from "prom-client";
import { eligibilityOf } from "../../core/jobs/pending-reason";
import { requirementGroupOf } from "../../core/jobs/requirements";
import { runEach } from "../../platform/concurrency/run-each";
import { listUnwrittenDeployments, listUnwrittenStorage } from "../billing/billing-months";
import type { Context } from "../context";
import { readFleet, readQueue } from "../jobs/queue-view";
import { countQueued, countRows } from "./database-counts";

const CACHE_MS = 5_000;
/** `forge_billing_months_behind` counts at most this many months for each of its label values. */
const MAX_MONTHS = 100;

/** Metrics that come from the database: the same values in every process. */
export class DatabaseMetrics {
  private readonly registry = new Registry();
  private readonly queued = this.gauge(
    "forge_queue_jobs",
    "Queued jobs, by type and why they wait",
    ["job_type", "reason"],
  );
  private readonly queuedAge = this.gauge(
    "forge_queue_oldest_seconds",
    "How long the oldest queued job has waited, by type and reason",
    ["job_type", "reason"],
  );
  private readonly months = this.gauge(
    "forge_billing_months_behind",
    "Ended months whose bill is not written yet, up to a hundred for each label",
    ["of"],
  );
  private readonly counts = new Map(
    Object.entries(COUNTS).map(([subject, { name, help, label }]) => [
      subject,
      this.gauge(name, help, label ? [label] : []),
    ]),
  );
  private readonly ages = new Map(
    Object.entries(AGES).map(([subject, { name, help }]) => [subject, this.gauge(name, help)]),
  );
  private reading: Promise<string> | undefined;
  /** No new reading begins before this time. */
  private validUntilMs = 0;

  constructor(private readonly ctx: Context) {}

  /** Prometheus text format. @throws if the database is unavailable. */
  text(): Promise<string> {
    const { clock } = this.ctx;
    if (!this.reading || clock.nowMs() > this.validUntilMs) {
      // Two readings at the same time would add their counts to the same gauges.
      this.validUntilMs = Number.POSITIVE_INFINITY;
      this.reading = this.read().finally(() => {
        this.validUntilMs = clock.nowMs() + CACHE_MS;
      });
      this.reading.catch(() => {
        this.reading = undefined;
      });
    }
    return this.reading;
  }

  private async read(): Promise<string> {
    this.registry.resetMetrics();
    // Wait for all, even if one fails: the next reading resets the gauges.
    await runEach([
      () => this.setQueueGauges(),
      () => this.setCountGauges(),
      () => this.setMonthGauges(),
    ]);
    return await this.registry.metrics();
  }

  private async setQueueGauges(): Promise<void> {
    const { pool } = this.ctx;
    const counts = await countQueued(pool);
    if (counts.length === 0) return;
    const reasons = await this.reasons();
    const oldest = new Map<string, number>();
    for (const { shape, job_type, jobs, oldest_s } of counts) {
      const labels = { job_type, reason: reasons.get(shape) ?? "unknown" };
      const series = `${job_type} ${labels.reason}`;
      oldest.set(series, Math.max(oldest_s, oldest.get(series) ?? 0));
      this.queued.inc(labels, jobs);
      this.queuedAge.set(labels, oldest.get(series) ?? 0);
    }
  }

  /**
   * Returns why the jobs of each requirement group wait: a code by requirement group. `readQueue`
   * returns a limited number of groups. The caller reports jobs of other groups as `unknown`.
   */
  private async reasons(): Promise<Map<string, string>> {
    const { pool } = this.ctx;
    const [fleet, queue] = await Promise.all([readFleet(pool), readQueue(pool)]);
    const reasons = new Map<string, string>();
    for (const group of queue.groups) {
      const { reason } = eligibilityOf(group, fleet);
      reasons.set(requirementGroupOf(group.userId, group), reason?.code ?? "workers_busy");
      // In a large fleet, `eligibilityOf` takes long for each group, so let other work of this
      // process run in between.
      await afterOthers();
    }
    return reasons;
  }

  private async setCountGauges(): Promise<void> {
    for (const { subject, label, count, oldest_s } of await countRows(this.ctx.pool)) {
      const name = COUNTS[subject]?.label;
      this.counts.get(subject)?.set(name ? { [name]: label } : {}, count);
      this.ages.get(subject)?.set(oldest_s ?? 0);
    }
  }

  private async setMonthGauges(): Promise<void> {
    const { pool } = this.ctx;
    const [deployments, storage] = await Promise.all([
      listUnwrittenDeployments(pool, MAX_MONTHS),
      listUnwrittenStorage(pool, MAX_MONTHS),
    ]);
    this.months.set({ of: "deployments" }, deployments.length);
    this.months.set({ of: "storage" }, storage.length);
  }

  private gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.registry] });
  }
}

interface Named {
  name: string;
  help: string;
  label?: string;
}

/** The metrics of row counts. The keys are values of `RowCount.subject` (database-counts.ts). */
const COUNTS: Record<string, Named> = {
  workers: { name: "forge_workers", help: "Workers in the fleet", label: "status" },
  outbox: { name: "forge_outbox_rows", help: "Outbox entries not delivered to Temporal yet" },
  wakes: {
    name: "forge_undelivered_wakes",
    help: "Pipelines and deployments with a change that their workflow was not told yet",
    label: "of",
  },
  finishing: {
    name: "forge_finishing_jobs",
    help: "Jobs with a successful result whose final writes are not done",
  },
  stuck: {
    name: "forge_stuck_writes",
    help: "Final writes that keep failing",
    label: "activity",
  },
  pipelines: { name: "forge_pipelines", help: "Unfinished pipelines", label: "status" },
  deployments: {
    name: "forge_deployments",
    help: "Active and stopping deployments",
    label: "status",
  },
  export: { name: "forge_billing_export_lines", help: "Billing lines not exported yet" },
};

const AGES: Record<string, Named> = {
  outbox: { name: "forge_outbox_oldest_seconds", help: "Age of the oldest outbox entry" },
  finishing: { name: "forge_finishing_oldest_seconds", help: "Age of the oldest such result" },
  export: {
    name: "forge_billing_export_oldest_seconds",
    help: "Age of the oldest billing line not exported yet",
  },
};
