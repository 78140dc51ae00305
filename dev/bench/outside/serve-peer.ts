import type { AddressInfo } from "node:net";
import express, { type Express } from "express";

/** The same number of connections to Postgres as a forge-server. */
export const POOL = 20;
/** Number of concurrent jobs: as many as Forge has workers in P1 (`workers` in scale.ts). */
export const WORKERS = 16;

/** Listens on a free port and sends the address to the parent process. Ends with the parent. */
export function servePeer(app: Express): void {
  process.on("disconnect", () => process.exit());
  const server = app.listen(0, "127.0.0.1", () => {
    process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
}

/**
 * Serves a peer of P1: `POST /jobs` submits a job, and is answered when the job has completed. The
 * workers run in the same process.
 */
export function serveQueue(runJob: () => Promise<unknown>): void {
  const app = express();
  app.use(express.json());
  app.post("/jobs", async (_request, response) => {
    await runJob();
    response.status(201).json({ status: "completed" });
  });
  servePeer(app);
}

/** Prints an error and exits with 1. */
export function failPeer(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
}
