import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { checkoutRoot } from "../../stack/paths";
import type { LoadReply, Loads } from "./load-generator";

/** The parent's handle of the load generator process. */
export class Generator {
  /** The largest `LoadReply.cpuShare` since the last call of `takeMaxCpuShare`. */
  private share = 0;

  private constructor(private readonly child: ChildProcess) {}

  static start(): Generator {
    return new Generator(fork(join(checkoutRoot(), "dist/dev/bench/outside/load-generator.js")));
  }

  async run<Name extends keyof Loads>(
    name: Name,
    options: Parameters<Loads[Name]>[0],
  ): Promise<Awaited<ReturnType<Loads[Name]>>> {
    const listening = new AbortController();
    const { signal } = listening;
    const replied = once(this.child, "message", { signal });
    const ended = once(this.child, "exit", { signal }).then(() => {
      throw new Error("the load generator ended");
    });
    // After the race, `listening.abort()` rejects the promise that is still pending. Ignore that
    // rejection.
    for (const one of [replied, ended]) one.catch(() => undefined);
    this.child.send({ name, options });
    const [reply] = (await Promise.race([replied, ended]).finally(() => listening.abort())) as [
      LoadReply,
    ];
    if (reply.error !== undefined) throw new Error(`${name}: ${reply.error}`);
    this.share = Math.max(this.share, reply.cpuShare);
    return reply.result as Awaited<ReturnType<Loads[Name]>>;
  }

  /** Returns the largest `LoadReply.cpuShare` since the last call of this method. */
  takeMaxCpuShare(): number {
    const { share } = this;
    this.share = 0;
    return share;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  stop(): void {
    this.child.kill();
  }
}
