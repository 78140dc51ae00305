import express from "express";
import pg from "pg";
import { failPeer, POOL, servePeer } from "./serve-peer";

const SCHEMA = `
  create table workers (worker_id text primary key, gpu jsonb, seen_at timestamptz);
  create table jobs (
    job_id bigint generated always as identity primary key, job_type text not null, status text not null,
    payload jsonb not null, created_at timestamptz not null default now())`;

/**
 * The server that Forge's HTTP API is compared with: a simple implementation with express and pg,
 * with one statement per request. It has no authentication, validation or events.
 */
async function main(): Promise<void> {
  const pool = new pg.Pool({ connectionString: process.argv[2], max: POOL });
  await pool.query(SCHEMA);
  const app = express();
  app.use(express.json());
  app.post("/workers", async ({ body }, response) => {
    await pool.query("insert into workers (worker_id) values ($1)", [body.worker_id]);
    response.status(201).json(body);
  });
  app.post("/heartbeats", async ({ body }, response) => {
    await pool.query("update workers set seen_at = now(), gpu = $2 where worker_id = $1", [
      body.worker_id,
      body.gpu,
    ]);
    response.json({ worker_id: body.worker_id, status: "idle", commands: [] });
  });
  app.post("/jobs", async ({ body }, response) => {
    const { rows } = await pool.query(
      "insert into jobs (job_type, status, payload) values ('audit', 'pending', $1) returning *",
      [body],
    );
    response.status(201).json(rows[0]);
  });
  app.get("/jobs", async (_request, response) => {
    const { rows } = await pool.query("select * from jobs order by job_id desc limit 20");
    response.json({ jobs: rows });
  });
  app.get("/jobs/:id", async ({ params }, response) => {
    const { rows } = await pool.query("select * from jobs where job_id = $1", [params.id]);
    response.json(rows[0]);
  });
  servePeer(app);
}

main().catch(failPeer);
