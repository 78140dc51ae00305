import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BootstrapStep } from "../../../core/fleet/bootstrap";
import { once } from "../../../platform/concurrency/once";
import { ConnectionRefused } from "../../../platform/net/refused";
import { keyDirOf, readKeyFile } from "../../../platform/ssh/key-files";
import { SshSession, shellQuote } from "../../../platform/ssh/session";
import type { Context } from "../../context";
import { type SshWorkerRow, trustHostKey } from "../bootstraps";

const read = (name: string): Buffer => readFileSync(join(__dirname, name));
const SCRIPT = read("bootstrap.sh").toString();

/**
 * Connects to a worker's machine. Trusts the host key on first use; later connections must show the
 * same key.
 */
export async function connect(
  ctx: Context,
  worker: SshWorkerRow,
  signal: AbortSignal,
): Promise<SshSession> {
  const { keyDir, addresses } = ctx.config.ssh;
  const address = await addresses.resolve(worker.ssh_host);
  const directory = keyDirOf(keyDir, worker.user_id, worker.shared);
  const target = {
    host: worker.ssh_host,
    address,
    port: worker.ssh_port,
    user: worker.ssh_user,
    privateKey: await readKeyFile(directory, worker.ssh_key_path),
    hostKey: worker.ssh_host_key ?? undefined,
  };
  const session = await SshSession.open(target, signal);
  const trusted = await trustHostKey(ctx.pool, worker, session.hostKey);
  if (trusted === session.hostKey) return session;
  session.close();
  if (trusted === null) throw new ConnectionRefused("another bootstrap run has replaced this one");
  throw new ConnectionRefused(`the host's key is ${session.hostKey}, not ${trusted}`);
}

/** Agent and handlers of this server's own release, packed by dev/forge.mjs. */
const bundled = once(() => ({
  archive: read("compute.tgz"),
  revision: read("compute.revision").toString(),
}));

/**
 * Files that a step needs in addition to those of `filesFor`. Only step `repository` needs one: the
 * bundled archive, if no repository is configured.
 */
export const archivesFor = (ctx: Context, step: BootstrapStep): Record<string, Buffer> =>
  step === "repository" && ctx.config.bootstrap.repository === undefined
    ? { "compute.tgz": bundled().archive }
    : {};

/** The fields of a worker that its set-up needs on the machine. */
export type DescribedWorker = Pick<SshWorkerRow, "worker_id" | "gpu_count" | "tags">;

/**
 * The contents of the bootstrap script and its settings, by file name. The settings are files so
 * that no value becomes part of a shell command.
 *
 * @param show called with each value of the operator's environment. The files contain the result of
 *   this call; by default, the value itself. `planBootstrap` redacts the values here, because
 *   people will see the files.
 */
export function filesFor(
  ctx: Context,
  worker: DescribedWorker,
  show: (value: string) => string = (value) => value,
): Record<string, string> {
  const { repository, repositoryRef, environment } = ctx.config.bootstrap;
  const given = Object.entries(environment).map(([name, value]) => [name, show(value)]);
  return {
    "bootstrap.sh": SCRIPT,
    settings: variableFile({
      WORKER_ID: worker.worker_id,
      GPU_COUNT: String(worker.gpu_count),
      REPOSITORY: repository ?? "",
      REPOSITORY_REF: repository ? repositoryRef : bundled().revision,
    }),
    environment: variableFile({
      ...Object.fromEntries(given),
      SERVICE_API_URL: ctx.config.http.publicUrl ?? "",
      WORKER_ID: worker.worker_id,
      WORKER_TAGS: worker.tags.join(","),
    }),
  };
}

/** Writes files into the bootstrap directory on the machine, each atomically. */
export async function upload(
  ctx: Context,
  worker: DescribedWorker,
  session: SshSession,
  files: Record<string, string | Buffer>,
  onOutput: (text: string) => void,
): Promise<void> {
  const directory = shellQuote(directoryOf(ctx, worker));
  const parent = shellQuote(ctx.config.bootstrap.remoteDir);
  for (const [name, content] of Object.entries(files)) {
    const file = shellQuote(name);
    const command =
      // The agent's account must be able to traverse the parent directory.
      `umask 022 && mkdir -p ${parent} && umask 077 && mkdir -p ${directory} && cd ${directory} && ` +
      `cat >${file}.part && mv ${file}.part ${file}`;
    const code = await session.run(command, { stdin: content, onOutput });
    if (code !== 0) throw new Error(`can't write ${name} to the machine`);
  }
}

/** Whether the script runs this step. The other steps run on the server. */
export const isScriptStep = (step: BootstrapStep): boolean =>
  step !== "connect" && step !== "ready";

export const commandOf = (
  ctx: Context,
  worker: DescribedWorker,
  step: BootstrapStep | "agent_log",
): string => `sh ${shellQuote(`${directoryOf(ctx, worker)}/bootstrap.sh`)} ${step}`;

/** One directory per worker: a machine may host several workers. */
const directoryOf = (ctx: Context, worker: DescribedWorker): string =>
  `${ctx.config.bootstrap.remoteDir}/${worker.worker_id}`;

/**
 * The content of a file of variables. The values are in double quotes, because a POSIX shell and
 * systemd read double quotes in the same way, but not single quotes.
 */
const variableFile = (variables: Record<string, string>): string =>
  Object.entries(variables)
    .map(([name, value]) => `${name}="${value.replaceAll(/["\\$`]/g, "\\$&")}"\n`)
    .join("");
