import { setImmediate as afterOthers } from "node:timers/promises";
import { Gauge, Registry } from "prom-client";
import { outlookOf } from "../../core/jobs/pending-reason";
import { requirementGroupOf } from "../../core/jobs/requirements";
import { listUnwrittenDeployments, listUnwrittenStorage } from "../billing/billing-months";
import type { Context } from "../context";
import { readFleet, readQueue } from "../jobs/queue-view";
import { countQueued, countStanding } from "./standing-counts";

/** The same counts for whoever asks within so long, and one reading at a time. */
const LASTS_MS = 5_000;
/** Months that are behind are counted up to it, of deployments and of storage. */
const MOST_MONTHS = 100;

/** What the database knows: the same whichever process is asked. */
export class StandingMetrics {
  private readonly registry = new Registry();
  private readonly queued = this.gauge(
    "forge_queue_jobs",
    "Queued jobs, by type and why they wait",
    ["job_type", "reason"],
  );
  private readonly queuedAge = this.gauge(
    "forge_queue_oldest_seconds",
    "How long the first waits",
    ["job_type", "reason"],
  );
  private readonly months = this.gauge(
    "forge_billing_months_behind",
    "Months over that are not written yet; a hundred and more count as a hundred of each",
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
  private readMs = 0;

  constructor(private readonly ctx: Context) {}

  /** Prometheus's text format. @throws when the database is away. */
  text(): Promise<string> {
    const nowMs = this.ctx.clock.nowMs();
    if (!this.reading || nowMs - this.readMs > LASTS_MS) {
      this.readMs = nowMs;
      this.reading = this.read();
      this.reading.catch(() => {
        this.reading = undefined;
      });
    }
    return this.reading;
  }

  private async read(): Promise<string> {
    this.registry.resetMetrics();
    await Promise.all([this.readQueue(), this.readStanding(), this.readMonths()]);
    return await this.registry.metrics();
  }

  private async readQueue(): Promise<void> {
    const { pool } = this.ctx;
    const counts = await countQueued(pool);
    if (counts.length === 0) return;
    const reasons = await this.reasons();
    const oldest = new Map<string, number>();
    for (const { shape, job_type, jobs, oldest_s } of counts) {
      const labels = { job_type, reason: reasons.get(shape) ?? "unknown" };
      const group = `${job_type} ${labels.reason}`;
      oldest.set(group, Math.max(oldest_s, oldest.get(group) ?? 0));
      this.queued.inc(labels, jobs);
      this.queuedAge.set(labels, oldest.get(group) ?? 0);
    }
  }

  /** By shape; of the first shapes, where there are very many. */
  private async reasons(): Promise<Map<string, string>> {
    const { pool } = this.ctx;
    const [fleet, queue] = await Promise.all([readFleet(pool), readQueue(pool)]);
    const reasons = new Map<string, string>();
    for (const shape of queue) {
      const { reason } = outlookOf(shape, fleet);
      reasons.set(requirementGroupOf(shape.userId, shape), reason?.code ?? "workers_busy");
      // In a large fleet each takes a while.
      await afterOthers();
    }
    return reasons;
  }

  private async readStanding(): Promise<void> {
    for (const { subject, label, count, oldest_s } of await countStanding(this.ctx.pool)) {
      const name = COUNTS[subject]?.label;
      this.counts.get(subject)?.set(name ? { [name]: label } : {}, count);
      this.ages.get(subject)?.set(oldest_s ?? 0);
    }
  }

  private async readMonths(): Promise<void> {
    const { pool } = this.ctx;
    const [deployments, storage] = await Promise.all([
      listUnwrittenDeployments(pool, MOST_MONTHS),
      listUnwrittenStorage(pool, MOST_MONTHS),
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

/** By the subjects of standing-counts.ts. */
const COUNTS: Record<string, Named> = {
  workers: { name: "forge_workers", help: "Workers in the fleet", label: "status" },
  outbox: { name: "forge_outbox_rows", help: "What Temporal is to be told" },
  finishing: {
    name: "forge_finishing_jobs",
    help: "Jobs whose result is in, and that have not ended",
  },
  stuck: {
    name: "forge_stuck_writes",
    help: "Last writes that fail again and again",
    label: "activity",
  },
  pipelines: { name: "forge_pipelines", help: "Pipelines that go on", label: "status" },
  deployments: { name: "forge_deployments", help: "Deployments that live", label: "status" },
  export: { name: "forge_billing_export_lines", help: "Lines of bills not exported yet" },
};

const AGES: Record<string, Named> = {
  outbox: { name: "forge_outbox_oldest_seconds", help: "Age of the oldest of these rows" },
  finishing: { name: "forge_finishing_oldest_seconds", help: "Since the first of these results" },
  export: { name: "forge_billing_export_oldest_seconds", help: "Age of the oldest of these lines" },
};
