import { Client, type ClientChannel } from "ssh2";
import { ConnectionRefused } from "../net/refused";
import { fingerprintOf } from "./host-key";

export interface SshTarget {
  /** The host name that the worker's owner gave. */
  host: string;
  /** The resolved and allowed address. Never shown to users. */
  address: string;
  port: number;
  user: string;
  privateKey: Buffer;
  /**
   * The fingerprint that the host must present. Undefined: any fingerprint is accepted, and
   * `SshSession.hostKey` says which one was presented.
   */
  hostKey: string | undefined;
}

interface RunOptions {
  stdin?: string | Buffer;
  onOutput: (text: string) => void;
}

const READY_TIMEOUT_MS = 20_000;
const KEEPALIVE_MS = 5_000;

/**
 * A connection to a machine, authenticated by key. Checks the host key before it sends anything.
 */
export class SshSession {
  /** Rejects when the connection ends, for any reason. */
  private readonly lost: Promise<never>;

  private constructor(
    private readonly client: Client,
    /** The fingerprint that the host presented. */
    readonly hostKey: string,
  ) {
    this.lost = new Promise((_resolve, reject) => {
      client.once("close", () => reject(new Error("the connection was lost")));
    });
    this.lost.catch(() => undefined);
    // Ignore the error, because `lost` rejects the running command. Without this listener, the
    // error would end the process.
    client.on("error", () => undefined);
  }

  /**
   * @param signal on abort, closes the connection at once, even while it is being opened.
   * @throws ConnectionRefused when the host key or our key is refused. Any other error may be
   *   transient.
   */
  static async open(target: SshTarget, signal: AbortSignal): Promise<SshSession> {
    const client = new Client();
    let presented = "";
    // `destroy` closes at once. `end` would wait for the machine, which may hang.
    const onAbort = (): unknown => client.destroy();
    signal.addEventListener("abort", onAbort, { once: true });
    client.once("close", () => signal.removeEventListener("abort", onAbort));
    await new Promise<void>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const fail = (error: Error & { level?: string }): void => {
        client.end();
        if (presented !== "" && target.hostKey !== undefined && presented !== target.hostKey) {
          const what = `the host's key is ${presented}, not ${target.hostKey} as it was before`;
          const hint = "if this is intended, request the bootstrap with the new key";
          reject(new ConnectionRefused(`${what}; ${hint}`));
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
          presented = fingerprintOf(key);
          return target.hostKey === undefined || presented === target.hostKey;
        },
      });
    });
    return new SshSession(client, presented);
  }

  /** Runs a command and returns its exit code. `onOutput` gets stdout and stderr as they arrive. */
  async run(command: string, options: RunOptions): Promise<number> {
    // ssh2 does not report a broken connection on its channels, so wait for `lost` too.
    return await Promise.race([this.runOpen(command, options), this.lost]);
  }

  private async runOpen(command: string, options: RunOptions): Promise<number> {
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

/** Quotes any text as one word of a POSIX shell. */
export const shellQuote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
