import { setTimeout as sleep } from "node:timers/promises";
import { Context as ActivityContext, ApplicationFailure } from "@temporalio/activity";
import { type BootstrapInput, type BootstrapStep, NOT_RETRYABLE } from "../../core/fleet/bootstrap";
import { ConnectionRefused } from "../../platform/net/refused";
import { transaction } from "../../platform/postgres/transaction";
import { createKey, findExpiry, revokeKey } from "../../services/accounts/keys";
import { lockTenant } from "../../services/accounts/quotas";
import type { Context } from "../../services/context";
import {
  archivesFor,
  commandOf,
  connect,
  filesFor,
  upload,
} from "../../services/fleet/bootstrap/machine";
import {
  beginBootstrap,
  endStep,
  failBootstrap,
  findBootstrapping,
  finishBootstrap,
  isHeard,
  type SshWorkerRow,
  setBootstrapKey,
  startStep,
} from "../../services/fleet/bootstraps";
import { lockWorker } from "../../services/fleet/workers";
import { StepLog } from "./step-log";

/** A server that dies is noticed after the workflow's heartbeat time-out, which is several of these. */
const HEARTBEAT_MS = 3_000;
const LISTEN_MS = 500;

/** What a step has to work with. */
interface Step {
  worker: SshWorkerRow;
  log: StepLog;
  /** Aborts when the step should not go on: it took too long, or another bootstrap replaced this one. */
  signal: AbortSignal;
}

export function createBootstrapActivities(ctx: Context) {
  const scriptStep =
    (name: BootstrapStep) =>
    async (input: BootstrapInput): Promise<void> =>
      await step(ctx, input, name, (given) => runScript(ctx, given, name));
  return {
    /** Takes the run as this workflow's; done twice it changes nothing. */
    async beginBootstrap({ workerId, run }: BootstrapInput): Promise<void> {
      await beginBootstrap(ctx.pool, workerId, run);
    },

    async connectToMachine(input: BootstrapInput): Promise<void> {
      await step(ctx, input, "connect", async ({ worker, log, signal }) => {
        const session = await connect(ctx, worker, signal);
        session.close();
        log.add(
          `${worker.ssh_user}@${worker.ssh_host} port ${worker.ssh_port}, ${session.hostKey}\n`,
        );
      });
    },

    runScript: scriptStep("script"),
    installPackages: scriptStep("packages"),
    fetchRepository: scriptStep("repository"),
    installRequirements: scriptStep("requirements"),

    /** With a worker key of its own, in place of the one before: no other copy of either is left. */
    async startAgent(input: BootstrapInput): Promise<void> {
      await step(ctx, input, "agent", async (given) => {
        const { key, keyId } = await mintKey(ctx, input);
        given.log.hide(key);
        ctx.logger.info({ worker_id: input.workerId, key_id: keyId }, "worker key made");
        await runScript(ctx, given, "agent", `${key}\n`);
      });
    },

    async markReady(input: BootstrapInput): Promise<void> {
      await step(ctx, input, "ready", async ({ worker, log, signal }) => {
        log.add("waiting for the agent's registration\n");
        const { readyTimeoutS } = ctx.config.bootstrap;
        const deadline = ctx.clock.nowMs() + readyTimeoutS * 1000;
        while (!(await isHeard(ctx.pool, worker.worker_id))) {
          if (ctx.clock.nowMs() > deadline) {
            await tellAgentLog(ctx, { worker, log, signal });
            throw new ConnectionRefused(
              `the agent was started, but not heard for ${readyTimeoutS} s`,
            );
          }
          await sleep(LISTEN_MS, undefined, { signal });
        }
        if (!(await finishBootstrap(ctx.pool, input.workerId, input.run))) throw superseded();
        log.add("it was heard, and is idle\n");
      });
      ctx.logger.info({ worker_id: input.workerId }, "worker is set up");
      ctx.signals.queueChanged();
    },

    /** The bootstrap has failed at this step: `error`, with what the step said last. Idempotent. */
    async failBootstrap(input: BootstrapInput & { step: BootstrapStep }): Promise<void> {
      if (!(await failBootstrap(ctx.pool, input.workerId, input.run, input.step))) return;
      ctx.logger.warn({ worker_id: input.workerId, step: input.step }, "bootstrap failed");
      ctx.signals.queueChanged();
    },
  };
}

async function requireWorker(ctx: Context, input: BootstrapInput): Promise<SshWorkerRow> {
  const worker = await findBootstrapping(ctx.pool, input.workerId, input.run);
  if (!worker) throw superseded();
  return worker;
}

const superseded = (): ApplicationFailure =>
  ApplicationFailure.nonRetryable(
    "the worker is not being set up by this run any more",
    NOT_RETRYABLE,
  );

/** Does one step, heartbeating to Temporal, with its log and its end in the database. */
async function step(
  ctx: Context,
  input: BootstrapInput,
  name: BootstrapStep,
  work: (given: Step) => Promise<void>,
): Promise<void> {
  const worker = await requireWorker(ctx, input);
  const activity = ActivityContext.current();
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, activity.cancellationSignal]);
  const heartbeat = setInterval(() => {
    activity.heartbeat();
    requireWorker(ctx, input).catch((error: unknown) => {
      if (error instanceof ApplicationFailure) stop.abort(error);
    });
  }, HEARTBEAT_MS);
  const onFlood = (maxBytes: number): void => {
    const message = `the machine said more than ${maxBytes} bytes; the connection was cut`;
    stop.abort(new ConnectionRefused(message));
  };
  const log = new StepLog(ctx, input.workerId, name, secretsOf(ctx), onFlood);
  try {
    await startStep(ctx.pool, input.workerId, name);
    await work({ worker, log, signal });
    await log.close();
    await endStep(ctx.pool, input.workerId, name, null);
  } catch (caught) {
    await log.close();
    if (caught instanceof ApplicationFailure) throw caught;
    const flood = stop.signal.reason instanceof ConnectionRefused ? stop.signal.reason : undefined;
    // Replaced by another bootstrap, or by none: this one says nothing any more.
    if (stop.signal.aborted && !flood) throw superseded();
    // It took too long, and another try may be under way.
    if (activity.cancellationSignal.aborted) throw caught;
    const error = flood ?? caught;
    const message = error instanceof Error ? error.message : String(error);
    await endStep(ctx.pool, input.workerId, name, [log.lastLines, message].join("\n").trim());
    // What the machine said stays out of histories.
    if (error instanceof ConnectionRefused) {
      throw ApplicationFailure.nonRetryable("refused; the worker says why", NOT_RETRYABLE);
    }
    throw ApplicationFailure.retryable("failed; the worker says why");
  } finally {
    clearInterval(heartbeat);
  }
}

/** Brings the script there, as it is now, and runs one of its steps. */
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
    const code = await session.run(commandOf(ctx, worker, name), {
      onOutput: log.add,
      ...(stdin === undefined ? {} : { stdin }),
    });
    if (code !== 0) throw new Error(`exit code ${code}`);
  } finally {
    session.close();
  }
}

/** For people: why the agent may not be heard. */
async function tellAgentLog(ctx: Context, { worker, log, signal }: Step): Promise<void> {
  const session = await connect(ctx, worker, signal);
  try {
    await session.run(commandOf(ctx, worker, "agent_log"), { onOutput: log.add });
  } finally {
    session.close();
  }
}

/** Of the environment that the operator gives to agents: what is named like a secret. */
const secretsOf = (ctx: Context): string[] =>
  Object.entries(ctx.config.bootstrap.environment)
    .filter(([name, value]) => /KEY|SECRET|TOKEN|PASSWORD/.test(name) && value.length > 3)
    .map(([, value]) => value);

/** Another key for the worker, and the end of the one before, in one transaction: never two that live. */
async function mintKey(
  ctx: Context,
  input: BootstrapInput,
): Promise<{ key: string; keyId: string }> {
  const { made, old } = await transaction(ctx.pool, async (db) => {
    await lockWorker(db, input.workerId);
    const worker = await findBootstrapping(db, input.workerId, input.run);
    if (!worker) throw superseded();
    // A key that is revoked meanwhile takes this one along.
    await lockTenant(db, worker.user_id);
    const { added_by_key_id: asking } = worker;
    // Those from before such keys were noted have none.
    const expiry = asking === null ? null : await findExpiry(db, asking);
    if (expiry === undefined) {
      throw new ConnectionRefused("the key that asked for this was revoked or has expired");
    }
    const made = await createKey(db, {
      userId: worker.user_id,
      scope: "worker",
      name: `worker ${worker.worker_id}`.slice(0, 128),
      madeByAdmin: worker.shared,
      workers: 1,
      expiresAt: expiry?.toISOString() ?? null,
      ...(asking === null ? {} : { madeByKeyId: asking }),
    });
    await setBootstrapKey(db, worker.worker_id, made.key_id);
    const old = worker.bootstrap_key_id;
    if (old !== null) await revokeKey(db, old, null);
    return { made, old };
  });
  if (old !== null) await ctx.signals.revoked(old);
  return { key: made.key, keyId: made.key_id };
}
