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

/** Connects to a worker's machine; the key that it shows first is the one that it must show ever after. */
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
  const trusted = await trustHostKey(ctx.pool, worker.worker_id, session.hostKey);
  if (trusted === session.hostKey) return session;
  session.close();
  throw new ConnectionRefused(`the host's key is ${session.hostKey}, not ${trusted}`);
}

/** Agent and handlers of this server's own release (dev/forge.mjs packs them). */
const brought = once(() => ({
  archive: read("compute.tgz"),
  revision: read("compute.revision").toString(),
}));

/** What a step needs beside `filesFor`: without a repository, what stands in its place. */
export const archivesFor = (ctx: Context, step: BootstrapStep): Record<string, Buffer> =>
  step === "repository" && ctx.config.bootstrap.repository === undefined
    ? { "compute.tgz": brought().archive }
    : {};

/** What the machine is told of its worker. */
export type Described = Pick<SshWorkerRow, "worker_id" | "gpu_count" | "tags">;

/**
 * The script, and what it is told: as files, so that no value is ever part of a command.
 *
 * @param show how values of the operator's environment are shown, where people read them.
 */
export function filesFor(
  ctx: Context,
  worker: Described,
  show: (value: string) => string = (value) => value,
): Record<string, string> {
  const { repository, repositoryRef, environment } = ctx.config.bootstrap;
  const source = repository ? [repository, repositoryRef] : ["", brought().revision];
  const given = Object.entries(environment).map(([name, value]) => [name, show(value)]);
  return {
    "bootstrap.sh": SCRIPT,
    settings: variableFile({
      WORKER_ID: worker.worker_id,
      GPU_COUNT: String(worker.gpu_count),
      REPOSITORY: source[0] ?? "",
      REPOSITORY_REF: source[1] ?? "",
    }),
    environment: variableFile({
      ...Object.fromEntries(given),
      SERVICE_API_URL: ctx.config.http.publicUrl ?? "",
      WORKER_ID: worker.worker_id,
      WORKER_TAGS: worker.tags.join(","),
    }),
  };
}

/** Puts files into the bootstrap's directory on the machine, each whole or not at all. */
export async function upload(
  ctx: Context,
  worker: Described,
  session: SshSession,
  files: Record<string, string | Buffer>,
  onOutput: (text: string) => void,
): Promise<void> {
  const directory = shellQuote(directoryOf(ctx, worker));
  const parent = shellQuote(ctx.config.bootstrap.remoteDir);
  for (const [name, content] of Object.entries(files)) {
    const file = shellQuote(name);
    const command =
      // The agent's account passes through the parent.
      `umask 022 && mkdir -p ${parent} && umask 077 && mkdir -p ${directory} && cd ${directory} && ` +
      `cat >${file}.part && mv ${file}.part ${file}`;
    const code = await session.run(command, { stdin: content, onOutput });
    if (code !== 0) throw new Error(`can't write ${name} to the machine`);
  }
}

/** Steps that the script does; the others are done from here. */
export const isOfScript = (step: BootstrapStep): boolean => step !== "connect" && step !== "ready";

/** How one of the script's steps is run there. */
export const commandOf = (
  ctx: Context,
  worker: Described,
  step: BootstrapStep | "agent_log",
): string => `sh ${shellQuote(`${directoryOf(ctx, worker)}/bootstrap.sh`)} ${step}`;

/** One for each worker: a machine may be several. */
const directoryOf = (ctx: Context, worker: Described): string =>
  `${ctx.config.bootstrap.remoteDir}/${worker.worker_id}`;

/** A file of variables. A POSIX shell and systemd read the same from double quotes, unlike from single. */
const variableFile = (variables: Record<string, string>): string =>
  Object.entries(variables)
    .map(([name, value]) => `${name}="${value.replaceAll(/["\\$`]/g, "\\$&")}"\n`)
    .join("");
