import { Client, type ClientChannel } from "ssh2";
import { ConnectionRefused } from "../net/refused";
import { fingerprintOf } from "./host-key";

export interface SshTarget {
  /** As its owner calls it. */
  host: string;
  /** What that is here, allowed; only whoever runs this server may read it. */
  address: string;
  port: number;
  user: string;
  privateKey: Buffer;
  /** The fingerprint that the host must show; undefined trusts what it shows, and says so. */
  hostKey: string | undefined;
}

const READY_TIMEOUT_MS = 20_000;
const KEEPALIVE_MS = 5_000;

/** One connection to a machine, by key; the host's key is checked before anything is sent. */
export class SshSession {
  /** Fails when the connection ends, however it does. */
  private readonly lost: Promise<never>;

  private constructor(
    private readonly client: Client,
    /** The fingerprint that the host showed. */
    readonly hostKey: string,
  ) {
    this.lost = new Promise((_resolve, reject) => {
      client.once("close", () => reject(new Error("the connection was lost")));
    });
    this.lost.catch(() => undefined);
    // What goes wrong from here on shows in the command that runs.
    client.on("error", () => undefined);
  }

  /**
   * @param signal ends the attempt, and ever after the connection, at once.
   * @throws ConnectionRefused when the host or our key is refused; any other error may be of the moment.
   */
  static async open(target: SshTarget, signal: AbortSignal): Promise<SshSession> {
    const client = new Client();
    let shown = "";
    // Not a polite end, for which a machine that hangs would be waited for.
    const onAbort = (): unknown => client.destroy();
    signal.addEventListener("abort", onAbort, { once: true });
    client.once("close", () => signal.removeEventListener("abort", onAbort));
    await new Promise<void>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const fail = (error: Error & { level?: string }): void => {
        client.end();
        if (shown !== "" && target.hostKey !== undefined && shown !== target.hostKey) {
          const message = `the host's key is ${shown}, not ${target.hostKey} as it was before`;
          reject(
            new ConnectionRefused(
              `${message}; if that is meant, call for the bootstrap with the new one`,
            ),
          );
        } else if (error.level === "client-authentication") {
          reject(new ConnectionRefused(`${target.user} can't log in with this key`));
        } else {
          const why = error.message.replaceAll(target.address, target.host);
          reject(new Error(`can't connect to ${target.host} port ${target.port}: ${why}`));
        }
      };
      client.once("ready", resolve);
      client.once("error", fail);
      client.once("close", () => fail(new Error("the connection was closed")));
      client.connect({
        host: target.address,
        port: target.port,
        username: target.user,
        privateKey: target.privateKey,
        readyTimeout: READY_TIMEOUT_MS,
        keepaliveInterval: KEEPALIVE_MS,
        keepaliveCountMax: 3,
        authHandler: ["publickey"],
        hostVerifier: (key: Buffer) => {
          shown = fingerprintOf(key);
          return target.hostKey === undefined || shown === target.hostKey;
        },
      });
    });
    return new SshSession(client, shown);
  }

  /**
   * Runs a command to its end; its exit code.
   *
   * @param onOutput what it says, both streams, as it comes.
   */
  async run(
    command: string,
    options: { stdin?: string | Buffer; onOutput: (text: string) => void },
  ): Promise<number> {
    // A connection that breaks tells neither a channel that is being opened nor one that is open.
    return await Promise.race([this.runOpen(command, options), this.lost]);
  }

  private async runOpen(
    command: string,
    options: { stdin?: string | Buffer; onOutput: (text: string) => void },
  ): Promise<number> {
    const channel = await new Promise<ClientChannel>((resolve, reject) => {
      this.client.exec(command, (error, opened) => (error ? reject(error) : resolve(opened)));
    });
    return await new Promise<number>((resolve, reject) => {
      let code: number | undefined;
      channel.setEncoding("utf8");
      channel.stderr.setEncoding("utf8");
      channel.on("data", options.onOutput);
      channel.stderr.on("data", options.onOutput);
      channel.on("exit", (exit: number | null, signalName?: string) => {
        code = exit ?? 255;
        if (signalName) options.onOutput(`\nended by ${signalName}\n`);
      });
      channel.on("close", () => {
        if (code === undefined) reject(new Error("the connection was lost"));
        else resolve(code);
      });
      channel.end(options.stdin ?? "");
    });
  }

  close(): void {
    this.client.destroy();
  }
}

/** One word of a POSIX shell, whatever is in it. */
export const shellQuote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
