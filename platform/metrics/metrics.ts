import type pg from "pg";
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricConfiguration,
  Registry,
} from "prom-client";
import { TemporalMetrics } from "./temporal-metrics";

/** From a fraction of a call to a long poll, in seconds. */
const REQUEST_S = [0.005, 0.02, 0.1, 0.5, 2, 10, 60];
/** From at once to a day in the queue, in seconds. */
const WAIT_S = [0.01, 0.1, 1, 10, 60, 600, 3_600, 86_400];
const STEP_S = [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600];
const BATCH = [1, 2, 5, 10, 50, 100, 500];
/** The event loop's delay is looked at so often, in ms: a finer look wakes an idle process too often. */
const LOOP_DELAY_MS = 100;

type Named = Pick<MetricConfiguration<string>, "name" | "help">;

/** What this process counts itself. No label's values come from users: a server has some hundred series. */
export class Metrics {
  /** Where this process runs workflows. */
  readonly temporal = new TemporalMetrics();
  private readonly registry = new Registry();
  private readonly made = { registers: [this.registry] };

  readonly requests = this.counter(
    { name: "forge_http_requests_total", help: "Answered requests, by canonical route and status" },
    ["route", "status"],
  );
  readonly requestSeconds = this.histogram(
    { name: "forge_http_request_duration_seconds", help: "Time to the answer's end; polls wait" },
    REQUEST_S,
    ["route"],
  );
  readonly refusals = this.counter(
    { name: "forge_http_refusals_total", help: "Refused requests, by route and the error's code" },
    ["route", "code"],
  );
  readonly submitted = this.counter(
    { name: "forge_jobs_submitted_total", help: "Jobs accepted, steps of pipelines among them" },
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
  readonly dispatchSeconds = this.histogram(
    { name: "forge_handout_wait_seconds", help: "From an attempt's queueing to its hand-out" },
    WAIT_S,
    ["job_type"],
  );
  readonly pollsParked = this.gauge({
    name: "forge_polls_parked",
    help: "Polls of workers that wait in this process",
  });
  readonly heartbeatBatch = this.histogram(
    { name: "forge_heartbeat_batch_size", help: "Heartbeats written at once" },
    BATCH,
  );
  readonly workersLost = this.counter(
    { name: "forge_workers_lost_total", help: "Workers or their attempts given up, by reason" },
    ["reason"],
  );
  readonly attemptsEnded = this.counter(
    { name: "forge_attempts_ended_total", help: "Attempts that ended in this process" },
    ["outcome"],
  );
  readonly temporalCalls = this.counter(
    { name: "forge_temporal_calls_total", help: "Calls that pay the outbox, by result" },
    ["call", "result"],
  );
  readonly repairs = this.counter(
    { name: "forge_workflow_repairs_total", help: "Workflows started again or ended by comparing" },
    ["repair"],
  );
  readonly finishSeconds = this.histogram(
    { name: "forge_finish_seconds", help: "Time of a job's last writes, by part" },
    STEP_S,
    ["part"],
  );
  readonly loopSuccess = this.gauge(
    { name: "forge_loop_last_success_timestamp_seconds", help: "When each loop last did its work" },
    ["loop"],
  );
  readonly loopFailures = this.counter(
    { name: "forge_loop_failures_total", help: "Turns of each loop that failed" },
    ["loop"],
  );
  private readonly connections = this.gauge(
    { name: "forge_database_connections", help: "Of this process's pool; waiting: who wants one" },
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

  /** How long a part of a job's last writes takes. */
  async finishing<T>(part: string, work: Promise<T>): Promise<T> {
    const done = this.finishSeconds.startTimer({ part });
    try {
      return await work;
    } finally {
      done();
    }
  }

  private isWatching = false;

  /** Memory, CPU and event loop; from the first time that somebody asks. */
  private watchProcess(): void {
    if (this.isWatching) return;
    this.isWatching = true;
    collectDefaultMetrics({
      register: this.registry,
      eventLoopMonitoringPrecision: LOOP_DELAY_MS,
    });
  }

  private counter(named: Named, labelNames: string[] = []): Counter {
    return new Counter({ ...named, labelNames, ...this.made });
  }

  private gauge(named: Named, labelNames: string[] = []): Gauge {
    return new Gauge({ ...named, labelNames, ...this.made });
  }

  private histogram(named: Named, buckets: number[], labelNames: string[] = []): Histogram {
    return new Histogram({ ...named, buckets, labelNames, ...this.made });
  }
}
