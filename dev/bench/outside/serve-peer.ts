import type { AddressInfo } from "node:net";
import express, { type Express } from "express";

/** As many connections to Postgres as a forge-server has. */
export const POOL = 20;
/** As many jobs at once as Forge's workers take. */
export const WORKERS = 16;

/** Listens, and tells the parent process the address. Ends with the parent. */
export function servePeer(app: Express): void {
  process.on("disconnect", () => process.exit());
  const server = app.listen(0, "127.0.0.1", () => {
    process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
}

/**
 * A peer of P1: `POST /jobs` submits a job, and is answered when it has completed. Its workers run in the
 * same process.
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

/** Ends the process with the error, which its parent shows. */
export function failPeer(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
}
