import type pg from "pg";
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricConfiguration,
  Registry,
} from "prom-client";
import { once } from "../concurrency/once";
import { TemporalMetrics } from "./temporal-metrics";

/** Histogram buckets in seconds, from a fast call to a long poll. */
const REQUEST_S = [0.005, 0.02, 0.1, 0.5, 2, 10, 60];
/** Histogram buckets in seconds, from an immediate dispatch to a day in the queue. */
const WAIT_S = [0.01, 0.1, 1, 10, 60, 600, 3_600, 86_400];
const STEP_S = [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600];
const BATCH = [1, 2, 5, 10, 50, 100, 500];
/** Sampling interval of the event loop's delay. A shorter one wakes an idle process too often. */
const LOOP_DELAY_MS = 100;

type Named = Pick<MetricConfiguration<string>, "name" | "help">;

/**
 * Metrics of this process. No label takes values from users, so there are only a few hundred
 * series.
 */
export class Metrics {
  /** The metrics of Temporal's SDK. Empty if this process runs no workflows. */
  readonly temporal = new TemporalMetrics();
  private readonly registry = new Registry();
  private readonly common = { registers: [this.registry] };

  readonly requests = this.counter(
    { name: "forge_http_requests_total", help: "Requests by canonical route and response status" },
    ["route", "status"],
  );
  readonly requestSeconds = this.histogram(
    {
      name: "forge_http_request_duration_seconds",
      help: "Time until the response ends; includes the wait of long polls",
    },
    REQUEST_S,
    ["route"],
  );
  readonly refusals = this.counter(
    { name: "forge_http_refusals_total", help: "Refused requests, by route and error code" },
    ["route", "code"],
  );
  readonly submitted = this.counter(
    { name: "forge_jobs_submitted_total", help: "Accepted jobs, including pipeline steps" },
    ["job_type"],
  );
  readonly matchSeconds = this.histogram(
    { name: "forge_match_pass_seconds", help: "Time of one pass of the scheduler" },
    STEP_S,
  );
  readonly assigned = this.counter({
    name: "forge_attempts_assigned_total",
    help: "Attempts assigned to workers",
  });
  readonly assignSeconds = this.histogram(
    {
      name: "forge_assign_wait_seconds",
      help: "Time from a job's submission to its first assignment",
    },
    WAIT_S,
    ["job_type"],
  );
  readonly dispatchSeconds = this.histogram(
    { name: "forge_handout_wait_seconds", help: "Time from queueing an attempt to its dispatch" },
    WAIT_S,
    ["job_type"],
  );
  readonly waitingPolls = this.gauge({
    name: "forge_polls_parked",
    help: "Long polls of workers that wait in this process",
  });
  readonly heartbeatBatch = this.histogram(
    { name: "forge_heartbeat_batch_size", help: "Heartbeats written in one batch" },
    BATCH,
  );
  readonly workersLost = this.counter(
    { name: "forge_workers_lost_total", help: "Workers or attempts marked lost, by reason" },
    ["reason"],
  );
  readonly attemptsEnded = this.counter(
    { name: "forge_attempts_ended_total", help: "Attempts that ended in this process" },
    ["outcome"],
  );
  readonly temporalCalls = this.counter(
    {
      name: "forge_temporal_calls_total",
      help: "Calls that deliver outbox entries, by result and gRPC code",
    },
    ["call", "result", "code"],
  );
  readonly repairs = this.counter(
    {
      name: "forge_workflow_repairs_total",
      help: "Workflows that the reconciler restarted or ended",
    },
    ["repair"],
  );
  readonly finishSeconds = this.histogram(
    { name: "forge_finish_seconds", help: "Time of a job's final writes, by part" },
    STEP_S,
    ["part"],
  );
  readonly loopSuccess = this.gauge(
    {
      name: "forge_loop_last_success_timestamp_seconds",
      help: "Time of each loop's last successful run",
    },
    ["loop"],
  );
  readonly loopFailures = this.counter(
    { name: "forge_loop_failures_total", help: "Failed runs of each loop" },
    ["loop"],
  );
  private readonly connections = this.gauge(
    {
      name: "forge_database_connections",
      help: "Connections of this process's pool; waiting: queued requests",
    },
    ["state"],
  );

  constructor(private readonly pool: pg.Pool) {}

  /** Prometheus's text format. */
  async text(): Promise<string> {
    this.watchProcess();
    const { totalCount, idleCount, waitingCount } = this.pool;
    this.connections.set({ state: "used" }, totalCount - idleCount);
    this.connections.set({ state: "idle" }, idleCount);
    this.connections.set({ state: "waiting" }, waitingCount);
    return await this.registry.metrics();
  }

  /** Measures how long `work`, one part of a job's final writes, takes. */
  async timeFinalWrite<T>(part: string, work: Promise<T>): Promise<T> {
    const done = this.finishSeconds.startTimer({ part });
    try {
      return await work;
    } finally {
      done();
    }
  }

  /** Starts to measure memory, CPU and the event loop. The first scrape calls this. */
  private readonly watchProcess = once(() =>
    collectDefaultMetrics({
      register: this.registry,
      eventLoopMonitoringPrecision: LOOP_DELAY_MS,
    }),
  );

  private counter(named: Named, labelNames: string[] = []): Counter {
    return new Counter({ ...named, labelNames, ...this.common });
  }

  private gauge(named: Named, labelNames: string[] = []): Gauge {
    return new Gauge({ ...named, labelNames, ...this.common });
  }

  private histogram(named: Named, buckets: number[], labelNames: string[] = []): Histogram {
    return new Histogram({ ...named, buckets, labelNames, ...this.common });
  }
}
