import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ApiClient } from "../../dev/api-client";
import { checkoutRoot } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";

interface StackFile {
  ready: true;
  api_url: string;
  temporal_address: string;
  temporal_ui_url: string;
  postgres_url: string;
  admin_api_key: string;
  user_api_key: string;
  worker_api_key: string;
  pids: { stack: number; postgres: number; temporal: number; server: number; agents: number[] };
}

/** Runs `npm start` as a separate process. */
export class NpmStart {
  output = "";
  readonly exited: Promise<number | null>;

  private constructor(
    private readonly child: ChildProcess,
    private readonly home: string,
  ) {
    this.exited = new Promise((resolve) => child.once("exit", resolve));
    child.stderr?.on("data", (chunk: Buffer) => {
      this.output += chunk.toString();
    });
  }

  static run(home: string, env: Record<string, string> = {}): NpmStart {
    const script = join(checkoutRoot(), "dist", "dev", "start.js");
    const child = spawn(process.execPath, [script], {
      env: { ...process.env, FORGE_HOME: home, FORGE_PORT: "0", ...env },
      stdio: ["ignore", "ignore", "pipe"],
    });
    return new NpmStart(child, home);
  }

  get stackFile(): string {
    return join(this.home, "stack.json");
  }

  /** Waits until the stack is ready. @returns the content of stack.json. */
  async ready(): Promise<StackFile> {
    const own = (): StackFile | undefined => {
      if (!existsSync(this.stackFile)) return undefined;
      const content = JSON.parse(readFileSync(this.stackFile, "utf8")) as StackFile;
      return content.pids.stack === this.child.pid ? content : undefined;
    };
    return await waitFor("stack.json", own, { timeoutMs: 60_000 }).catch((error: Error) => {
      throw new Error(`${error.message}; output:\n${this.output}`);
    });
  }

  async user(): Promise<ApiClient> {
    const { api_url, user_api_key } = await this.ready();
    return new ApiClient(api_url, user_api_key);
  }

  get stackFileMode(): number {
    return statSync(this.stackFile).mode & 0o777;
  }

  /** Sends SIGKILL to all processes of the stack, the parent first so that it restarts none. */
  async killAll(): Promise<void> {
    const { pids } = await this.ready();
    for (const pid of [pids.stack, pids.server, pids.temporal, pids.postgres, ...pids.agents]) {
      process.kill(pid, "SIGKILL");
    }
    await this.exited;
  }

  async stop(): Promise<number | null> {
    this.child.kill("SIGTERM");
    return await this.exited;
  }
}
