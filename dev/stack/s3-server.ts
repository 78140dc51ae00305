import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { GoPrograms } from "./go-programs";
import { ManagedProcess } from "./process";
import type { Say } from "./say";
import { freePorts, waitFor } from "./wait";

const PROGRAMS = new GoPrograms("versitygw", ["github.com/versity/versitygw/cmd/versitygw"]);

/** Whether the server is built, or can be built. */
export const canHaveS3Server = (): boolean => PROGRAMS.available;

/** Returns the path of the S3 server's program. Builds it once with Go into the cache. */
export async function s3Binary(say: Say): Promise<string> {
  const announcement = "Building an S3 server with Go (once, about a minute) …";
  return join(await PROGRAMS.build(announcement, say), "versitygw");
}

/** A real S3 server for tests: the Versity gateway on a directory. */
export class S3Server {
  readonly accessKeyId = "forge-test";
  readonly secretAccessKey = "forge-test-secret";
  process!: ManagedProcess;

  private constructor(
    private readonly home: string,
    private readonly program: string,
    private readonly port: number,
  ) {}

  static async start(home: string, say: Say): Promise<S3Server> {
    const program = await s3Binary(say);
    const [port = 0] = await freePorts(1);
    const server = new S3Server(home, program, port);
    await server.start();
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Environment variables for servers and agents that use this S3 server. */
  get environment(): Record<string, string> {
    return {
      S3_ENDPOINT: this.endpoint,
      S3_ACCESS_KEY_ID: this.accessKeyId,
      S3_SECRET_ACCESS_KEY: this.secretAccessKey,
    };
  }

  /** Each folder in this directory is a bucket, and each file in a bucket is an object. */
  get directory(): string {
    return join(this.home, "buckets");
  }

  /** Starts the server. A restart keeps the address and the buckets. */
  async start(): Promise<void> {
    const iam = join(this.home, "iam");
    for (const folder of [this.directory, iam]) mkdirSync(folder, { recursive: true });
    this.process = ManagedProcess.start({
      name: "s3",
      program: this.program,
      args: ["--port", `127.0.0.1:${this.port}`, "--iam-dir", iam, "posix", this.directory],
      env: {
        ...process.env,
        ROOT_ACCESS_KEY: this.accessKeyId,
        ROOT_SECRET_KEY: this.secretAccessKey,
      },
      logFile: join(this.home, "s3.log"),
    });
    await waitFor("the S3 server", () => fetch(this.endpoint).then(() => true), {
      process: this.process,
    });
  }
}
