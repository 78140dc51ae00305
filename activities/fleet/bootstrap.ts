import { setTimeout as sleep } from "node:timers/promises";
import { Context as ActivityContext, ApplicationFailure } from "@temporalio/activity";
import { type BootstrapInput, type BootstrapStep, NOT_RETRYABLE } from "../../core/fleet/bootstrap";
import { ConnectionRefused } from "../../platform/net/refused";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { createKey, findExpiry, markRevoked } from "../../services/accounts/keys";
import { lockTenant } from "../../services/accounts/quotas";
import type { Context } from "../../services/context";
import {
  archivesFor,
  commandOf,
  connect,
  filesFor,
  upload,
} from "../../services/fleet/bootstrap/machine-session";
import { endStep, startStep } from "../../services/fleet/bootstrap-steps";
import {
  beginBootstrap,
  failBootstrap,
  findBootstrapping,
  finishBootstrap,
  hasSentHeartbeat,
  isBootstrapFinished,
  type SshWorkerRow,
  setBootstrapKey,
} from "../../services/fleet/bootstraps";
import { lockWorker } from "../../services/fleet/workers";
import { StepLog } from "./step-log";

/**
 * Interval of a step's heartbeats to Temporal. Much shorter than `heartbeatTimeout` in
 * workflows/bootstrap.ts: without a heartbeat for that long, Temporal considers the process dead.
 */
const HEARTBEAT_MS = 3_000;
const POLL_MS = 500;

/** The arguments of a step's work function. */
interface Step {
  worker: SshWorkerRow;
  log: StepLog;
  /**
   * Aborts when the step must stop: the step timed out, another bootstrap replaced this one, or the
   * machine sent too much output.
   */
  signal: AbortSignal;
}

export function createBootstrapActivities(ctx: Context) {
  const scriptStep =
    (name: BootstrapStep) =>
    async (input: BootstrapInput): Promise<void> =>
      await step(ctx, input, name, (given) => runScript(ctx, given, name));
  return {
    /** Records that bootstrap run `run` has started, and resets its steps. Idempotent. */
    async beginBootstrap({ workerId, run }: BootstrapInput): Promise<void> {
      await beginBootstrap(ctx.pool, workerId, run);
    },

    async connectToMachine(input: BootstrapInput): Promise<void> {
      await step(ctx, input, "connect", async ({ worker, log, signal }) => {
        const { ssh_user: user, ssh_host: host, ssh_port: port } = worker;
        const session = await connect(ctx, worker, signal);
        session.close();
        log.add(`${user}@${host} port ${port}, ${session.hostKey}\n`);
      });
    },

    runScript: scriptStep("script"),
    installPackages: scriptStep("packages"),
    fetchRepository: scriptStep("repository"),
    installRequirements: scriptStep("requirements"),

    /**
     * Starts the agent with a new key, whose text is stored only on the machine. Revokes the
     * previous key.
     */
    async startAgent(input: BootstrapInput): Promise<void> {
      await step(ctx, input, "agent", async (given) => {
        const { key, keyId } = await mintKey(ctx, input);
        given.log.hide(key);
        ctx.logger.info({ worker_id: input.workerId, key_id: keyId }, "worker key created");
        await runScript(ctx, given, "agent", `${key}\n`);
      });
    },

    /** Waits for the agent's first heartbeat and ends the run. Idempotent. */
    async markReady(input: BootstrapInput): Promise<void> {
      if (await isBootstrapFinished(ctx.pool, input.workerId, input.run)) return;
      await step(ctx, input, "ready", async ({ worker, log, signal }) => {
        log.add("waiting for the agent's first heartbeat\n");
        const { readyTimeoutS } = ctx.config.bootstrap;
        const deadline = ctx.clock.nowMs() + readyTimeoutS * 1000;
        while (!(await hasSentHeartbeat(ctx.pool, worker.worker_id))) {
          if (ctx.clock.nowMs() > deadline) {
            await appendAgentLog(ctx, { worker, log, signal });
            const message = `the agent was started, but sent no heartbeat for ${readyTimeoutS} s`;
            throw new ConnectionRefused(message);
          }
          await sleep(POLL_MS, undefined, { signal });
        }
        if (!(await withLockedWorker(ctx, input, finishBootstrap))) throw superseded();
        log.add("heartbeat received; the worker is in service\n");
      });
      ctx.logger.info({ worker_id: input.workerId }, "worker ready");
      ctx.signals.queueChanged();
    },

    /** Sets the worker to `error`, with the last output of the failed step. Idempotent. */
    async failBootstrap(input: BootstrapInput & { step: BootstrapStep }): Promise<void> {
      const fail = (db: Queryable, workerId: string, run: number): Promise<boolean> =>
        failBootstrap(db, workerId, run, input.step);
      if (!(await withLockedWorker(ctx, input, fail))) return;
      ctx.logger.warn({ worker_id: input.workerId, step: input.step }, "bootstrap failed");
      ctx.signals.queueChanged();
    },
  };
}

/**
 * Runs a write that ends a bootstrap run. The worker is locked in a statement of its own: the write
 * then sees everything that was committed before the lock, such as the end of the worker's attempt.
 */
async function withLockedWorker(
  ctx: Context,
  { workerId, run }: BootstrapInput,
  write: (db: Queryable, workerId: string, run: number) => Promise<boolean>,
): Promise<boolean> {
  return await transaction(ctx.pool, async (db) => {
    await lockWorker(db, workerId);
    return await write(db, workerId, run);
  });
}

async function requireWorker(db: Queryable, input: BootstrapInput): Promise<SshWorkerRow> {
  const worker = await findBootstrapping(db, input.workerId, input.run);
  if (!worker) throw superseded();
  return worker;
}

const superseded = (): ApplicationFailure =>
  ApplicationFailure.nonRetryable("this bootstrap run was replaced or has ended", NOT_RETRYABLE);

/** Runs one step with heartbeats to Temporal. Writes the step's log and outcome to the database. */
async function step(
  ctx: Context,
  input: BootstrapInput,
  name: BootstrapStep,
  work: (given: Step) => Promise<void>,
): Promise<void> {
  const worker = await requireWorker(ctx.pool, input);
  const activity = ActivityContext.current();
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, activity.cancellationSignal]);
  const heartbeat = setInterval(() => {
    activity.heartbeat();
    requireWorker(ctx.pool, input).catch((error: unknown) => {
      if (error instanceof ApplicationFailure) stop.abort(error);
    });
  }, HEARTBEAT_MS);
  const onOverflow = (maxBytes: number): void => {
    const message = `the machine sent more than ${maxBytes} bytes; the connection was closed`;
    stop.abort(new ConnectionRefused(message));
  };
  const row = { ...input, step: name };
  const log = new StepLog(ctx, row, secretsOf(ctx), onOverflow);
  try {
    if (!(await startStep(ctx.pool, row))) throw superseded();
    await work({ worker, log, signal });
    await log.close();
    await endStep(ctx.pool, row, null);
  } catch (caught) {
    await log.close();
    if (caught instanceof ApplicationFailure) throw caught;
    const { reason } = stop.signal;
    const overflow = reason instanceof ConnectionRefused ? reason : undefined;
    // `requireWorker` has found that another bootstrap replaced this one, or that the worker is no
    // longer bootstrapping. Don't write the step's state.
    if (stop.signal.aborted && !overflow) throw superseded();
    // The step has timed out: another try of it may be running, so don't write the step's state.
    if (activity.cancellationSignal.aborted) throw caught;
    const error = overflow ?? caught;
    const message = error instanceof Error ? error.message : String(error);
    // Write the outcome only if this run is still active: after its end, or once another run is
    // requested, its steps must not change. If Temporal then retries this step, `requireWorker` ends
    // the retry with a non-retryable error.
    if (await findBootstrapping(ctx.pool, input.workerId, input.run)) {
      await endStep(ctx.pool, row, [log.lastLines, message].join("\n").trim());
    }
    // Keep the machine's output out of workflow histories.
    if (error instanceof ConnectionRefused) {
      const hint = "refused; see the worker's status_reason";
      throw ApplicationFailure.nonRetryable(hint, NOT_RETRYABLE);
    }
    throw ApplicationFailure.retryable("failed; see the worker's status_reason");
  } finally {
    clearInterval(heartbeat);
  }
}

/** Uploads the current script and runs one of its steps. */
async function runScript(
  ctx: Context,
  { worker, log, signal }: Step,
  name: BootstrapStep,
  stdin?: string,
): Promise<void> {
  const session = await connect(ctx, worker, signal);
  try {
    const files = { ...filesFor(ctx, worker), ...archivesFor(ctx, name) };
    await upload(ctx, worker, session, files, log.add);
    const streams = { onOutput: log.add, ...(stdin === undefined ? {} : { stdin }) };
    const code = await session.run(commandOf(ctx, worker, name), streams);
    if (code !== 0) throw new Error(`exit code ${code}`);
  } finally {
    session.close();
  }
}

/** Appends the agent's own log to the step's log. It may show why the agent sends no heartbeat. */
async function appendAgentLog(ctx: Context, { worker, log, signal }: Step): Promise<void> {
  const session = await connect(ctx, worker, signal);
  try {
    await session.run(commandOf(ctx, worker, "agent_log"), { onOutput: log.add });
  } finally {
    session.close();
  }
}

/**
 * Returns the secrets to redact: the values of those agent environment variables whose names
 * contain a word such as KEY or TOKEN.
 */
const secretsOf = (ctx: Context): string[] =>
  Object.entries(ctx.config.bootstrap.environment)
    .filter(([name, value]) => /KEY|SECRET|TOKEN|PASSW|CREDENTIAL/.test(name) && value.length > 3)
    .map(([, value]) => value);

/** Replaces the worker's key in one transaction, so that only one key is valid. */
async function mintKey(
  ctx: Context,
  input: BootstrapInput,
): Promise<{ key: string; keyId: string }> {
  const { created, old } = await transaction(ctx.pool, async (db) => {
    await lockWorker(db, input.workerId);
    const worker = await requireWorker(db, input);
    // `revokeKey` takes the same lock. If the key that requested this bootstrap is revoked now, the
    // revocation waits for this transaction, finds the new key, and revokes it, too.
    await lockTenant(db, worker.user_id);
    const { added_by_key_id: requestedBy } = worker;
    // A worker that an earlier release added has no `added_by_key_id`. Its new key never expires.
    const expiry = requestedBy === null ? null : await findExpiry(db, requestedBy);
    if (expiry === undefined) {
      const message = "the API key that requested this bootstrap was revoked or has expired";
      throw new ConnectionRefused(message);
    }
    const created = await createKey(db, {
      userId: worker.user_id,
      scope: "worker",
      name: `worker ${worker.worker_id}`.slice(0, 128),
      madeByAdmin: worker.shared,
      workers: 1,
      expiresAt: expiry?.toISOString() ?? null,
      ...(requestedBy === null ? {} : { madeByKeyId: requestedBy }),
    });
    await setBootstrapKey(db, worker.worker_id, created.key_id);
    const old = worker.bootstrap_key_id;
    if (old !== null) await markRevoked(db, old, null);
    return { created, old };
  });
  if (old !== null) await ctx.signals.revoked(old);
  return { key: created.key, keyId: created.key_id };
}
