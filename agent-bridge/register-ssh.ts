import { z } from "zod";
import { requireScope } from "../core/accounts/permissions";
import { Conflict, ForgeError, InvalidRequest } from "../core/errors";
import { BOOTSTRAP_STEPS } from "../core/fleet/bootstrap";
import { HOST_NAME } from "../core/fleet/host-name";
import { gpuMemoryGb, gpuTokens } from "../core/jobs/requirements";
import { label, labels } from "../core/label";
import type { AnyCall } from "../platform/http/route";
import { newId } from "../platform/ids";
import { ConnectionRefused } from "../platform/net/refused";
import { hostKeyField } from "../platform/ssh/host-key";
import { DEFAULT_KEY_FILE, keyDirOf, readKeyFile } from "../platform/ssh/key-files";
import { recordAudit } from "../services/accounts/audit";
import { createOnce } from "../services/accounts/idempotency-keys";
import { requireRoomForWorker } from "../services/accounts/require-room";
import type { Context } from "../services/context";
import { commandOf, filesFor, isScriptStep } from "../services/fleet/bootstrap/machine-session";
import { redact } from "../services/fleet/bootstrap/redact";
import { countBootstraps, insertSshWorker } from "../services/fleet/bootstraps";

/** These two fields are in both forms of registration: by the agent, and by SSH. */
export const workerIdField = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, "letters, digits, . _ -; at most 128");

export const tagsField = z.array(z.string().max(128)).max(64).default([]);

const USER = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/;
/**
 * The path may be relative, be absolute, or begin with `~/`. `readKeyFile` checks later that the
 * file is in the tenant's key directory.
 */
const KEY_PATH = /^(?:~\/)?[A-Za-z0-9._/-]{1,512}$/;

/** The SSH form of spec.md 2.4; unknown fields are ignored. */
export const sshRegistration = z.object({
  ssh_host: z.string().regex(HOST_NAME, "must be a host name or an IP address"),
  ssh_user: z.string().regex(USER, "must be a user's name: letters, digits, _ . -"),
  ssh_key_path: z
    .string()
    .regex(KEY_PATH, "must be a path: letters, digits, . _ / -, and ~/ before them")
    .default(DEFAULT_KEY_FILE)
    .describe("name of a file in your SSH key directory on the server; `~/.ssh/x` means `x`"),
  ssh_port: z.int().min(1).max(65_535).default(22),
  ssh_host_key: hostKeyField
    .optional()
    .describe(
      "the host key to expect; by default the first key that the host shows is trusted and stored",
    ),
  gpu_count: z.int().min(0).max(1024),
  gpu_type: label(256),
  provider: z.string().max(256).optional(),
  metadata: z
    .looseObject({ instance_id: z.string().optional(), region: z.string().optional() })
    .optional(),
  worker_id: workerIdField.optional(),
  tags: labels(64).default([]),
  plan: z.boolean().default(false).describe("true: only report what the setup would do"),
});

export type SshRegistration = z.output<typeof sshRegistration>;

export const sshAnswer = z.object({
  worker_id: z.string(),
  status: z.literal("bootstrapping"),
  message: z.string(),
});

export const planAnswer = z.object({
  plan: z.array(z.object({ step: z.string(), does: z.string(), command: z.string().nullable() })),
  files: z.record(z.string(), z.string()).describe("contents of the files to write, by name"),
});

/** Registers a machine as a `bootstrapping` worker. A workflow then sets it up. */
export async function registerBySsh(
  ctx: Context,
  call: AnyCall,
  given: SshRegistration,
): Promise<z.infer<typeof sshAnswer>> {
  const { principal, request } = call;
  await requireUsable(ctx, call, given);
  const workerId = given.worker_id ?? newId("wkr");
  const { answer, isNew } = await createOnce(ctx, call, {
    content: given,
    create: async (db) => {
      const underWay = await countBootstraps(db, principal.userId);
      if (underWay >= ctx.config.bootstrap.maxPerTenant) {
        const message = `${underWay} of your workers are being set up; wait until one of them is done`;
        throw new ForgeError(429, "rate_limited", message);
      }
      await requireRoomForWorker(db, ctx.config.limits.caps, principal.userId);
      const inserted = await insertSshWorker(db, {
        workerId,
        userId: principal.userId,
        shared: principal.sharesWorkers,
        tags: tagsOf(given),
        gpuType: given.gpu_type,
        gpuCount: given.gpu_count,
        gpuMemoryGb: gpuMemoryGb(given.gpu_type),
        gpuTokens: gpuTokens(given.gpu_type),
        host: given.ssh_host,
        port: given.ssh_port,
        user: given.ssh_user,
        keyPath: given.ssh_key_path,
        hostKey: given.ssh_host_key ?? null,
        provider: given.provider ?? null,
        metadata: given.metadata ?? null,
        keyId: principal.ownerKeyId,
      });
      if (!inserted) {
        throw new Conflict("worker_id_taken", `worker "${workerId}" already exists`, "worker_id");
      }
      await recordAudit(db, {
        userId: principal.userId,
        action: "worker_added_by_ssh",
        subject: workerId,
        principal,
        after: { host: given.ssh_host, port: given.ssh_port, user: given.ssh_user },
      });
      const message = `${given.ssh_user}@${given.ssh_host} is being set up; GET the worker to follow it`;
      return { worker_id: workerId, status: "bootstrapping" as const, message };
    },
  });
  if (isNew) {
    const fields = { worker_id: answer.worker_id, host: given.ssh_host };
    request.log.info(fields, "worker registered by SSH");
    ctx.signals.queueChanged();
  }
  return answer;
}

/** Describes what a bootstrap would do, without doing it. */
export async function planBootstrap(
  ctx: Context,
  call: AnyCall,
  given: SshRegistration,
): Promise<z.infer<typeof planAnswer>> {
  await requireUsable(ctx, call, given);
  const { worker_id = "NEW", gpu_count } = given;
  const worker = { worker_id, gpu_count, tags: tagsOf(given) };
  const files = filesFor(ctx, worker, () => "[redacted]");
  const shown = Object.entries(files).map(([name, content]) => [name, redact(content, [])]);
  return {
    plan: BOOTSTRAP_STEPS.map(({ name, does }) => ({
      step: name,
      does,
      command: isScriptStep(name) ? commandOf(ctx, worker, name) : null,
    })),
    files: Object.fromEntries(shown),
  };
}

/** Returns the tags with the region added, because deployments select workers by region. */
function tagsOf({ tags, metadata }: SshRegistration): string[] {
  const region = metadata?.region === undefined ? [] : [metadata.region];
  return [...new Set(tagsField.safeParse([...tags, ...region]).data ?? tags)];
}

/**
 * Rejects a registration whose bootstrap would certainly fail, so that the caller learns of the
 * error at once.
 */
async function requireUsable(
  ctx: Context,
  { principal }: AnyCall,
  given: SshRegistration,
): Promise<void> {
  requireScope(principal, "user");
  if (ctx.config.http.publicUrl === undefined) {
    // Without a public URL, the agent could not reach this server, and the last step would fail
    // after an hour of installing.
    const message = "this server can't set up workers: FORGE_PUBLIC_URL must be set first";
    throw new Conflict("bootstrap_not_configured", message);
  }
  const directory = keyDirOf(ctx.config.ssh.keyDir, principal.userId, principal.sharesWorkers);
  await refuseField("ssh_key_path", readKeyFile(directory, given.ssh_key_path));
  await refuseField("ssh_host", ctx.config.ssh.addresses.resolve(given.ssh_host));
}

async function refuseField(param: string, check: Promise<unknown>): Promise<void> {
  await check.catch((error: unknown) => {
    // Ignore other errors: a name that does not resolve yet may resolve when the step runs.
    if (error instanceof ConnectionRefused) throw new InvalidRequest(error.message, param);
  });
}
