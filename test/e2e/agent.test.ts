/** The real agent with the real control plane. */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment, pythonPath } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ HEARTBEAT_INTERVAL: "0.5" });
  const python = await pythonEnvironment(saySilently);
  const generator = join(checkoutRoot(), "dev", "sample-data", "generate.py");
  for (const name of ["rows.parquet", "rows.jsonl"]) {
    const out = join(forge.stack.storeDir, "artifacts", "samples", name);
    execFileSync(python, [generator, "--rows", "2000", "--out", out]);
  }
  await forge.stack.startAgent("box");
});

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
});

interface AuditManifest {
  files: { path: string; sha256: string }[];
}

test.each(["rows.parquet", "rows.jsonl"])("audits %s", async (name) => {
  const { job_id } = await forge.user.submit("audit", {
    dataset_uri: `forge://artifacts/samples/${name}`,
  });
  const job = await untilEnded(forge.user, job_id);
  expect(job).toMatchObject({
    status: "completed",
    result: {
      num_rows: 2000,
      empty_fields: 0,
      overlong_fields: 0,
      schema: {
        columns: expect.arrayContaining([
          { name: "instruction", dtype: "string" },
          { name: "topic", dtype: "string" },
          { name: "clarity_score", dtype: "float" },
        ]),
      },
    },
  });
  const { quality, duplicate_rows } = job.result as {
    quality: Record<string, number>;
    duplicate_rows: number;
  };
  // About one in twenty generated answers is wrong, and about one in fifty rows is a copy.
  expect(quality.correctness_mean).toBeGreaterThan(0.92);
  expect(quality.correctness_mean).toBeLessThan(0.98);
  expect(duplicate_rows).toBeGreaterThan(20);
  const { artifacts } = await forge.user.get<{
    artifacts: { artifact_id: string; uri: string; manifest: AuditManifest }[];
  }>(`/api/jobs/${job_id}/artifacts`);
  const [artifact] = artifacts;
  const file = artifact?.manifest.files[0];
  expect(artifact?.manifest).toMatchObject({ verified: true, num_rows: 2000, quality });
  const path = join(forge.stack.storeDir, `${artifact?.uri}${file?.path}`.replace("forge://", ""));
  expect(createHash("sha256").update(readFileSync(path)).digest("hex")).toBe(file?.sha256);
  expect(await forge.user.get(`/api/billing/records/${job_id}`)).toMatchObject({
    total_cost_usd: 0.4,
  });
});

test.each([
  ["that is not there", "forge://artifacts/samples/none.parquet", /does not exist/, undefined],
  ["in a store it has no access to", "s3://bucket/key.parquet", /no store for s3/, undefined],
  ["of broken JSON", "forge://artifacts/samples/broken.jsonl", /line 2 .* not JSON/, '{"a":1}\n{'],
  ["without the columns", "forge://artifacts/samples/odd.jsonl", /none of the columns/, '{"a":1}'],
  ["that is empty", "forge://artifacts/samples/empty.jsonl", /no rows/, ""],
])("a dataset %s fails the job with the reason", async (_what, uri, message, content) => {
  if (content !== undefined) {
    const directory = join(forge.stack.storeDir, "artifacts", "samples");
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, uri.split("/").at(-1) ?? ""), content);
  }
  const { job_id } = await forge.user.submit("audit", { dataset_uri: uri });
  const job = await untilEnded(forge.user, job_id);
  expect(job).toMatchObject({ status: "failed", error_code: "job_error", attempts: 1 });
  expect(job.error).toMatch(message);
});

test("another tenant's dataset looks like one that never existed", async () => {
  const other = await createTenant(forge, "other");
  const upload = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": other.user.key, "content-type": "application/x-ndjson" },
    body: '{"secret": "for their eyes only"}\n',
  });
  const { dataset_id: id } = (await upload.json()) as { dataset_id: string };
  const root = join(forge.stack.storeDir, "artifacts");
  const ways = (of: string): string[] => [
    `forge://artifacts/datasets/${of}/raw.jsonl`,
    `forge://artifacts//%64atasets/${of}/raw.jsonl`,
    `file://${root}/datasets/${of}/raw.jsonl`,
  ];
  const errorOf = async (uri: string): Promise<unknown> => {
    const { job_id } = await forge.user.submit("audit", { dataset_uri: uri });
    const { status, error } = await untilEnded(forge.user, job_id);
    return [status, error?.replace(uri, "<uri>")];
  };
  const never = ways("ds_00000000000000000000000000");
  for (const [n, uri] of ways(id).entries()) {
    expect(await errorOf(uri)).toEqual(await errorOf(never[n] ?? ""));
  }
  const log = "forge://artifacts/logs/job_x/attempt-1.log";
  expect(await errorOf(log)).toEqual(["failed", "<uri> does not exist"]);
});

test("idle it takes under 1 % of a core and under 60 MB", async () => {
  const pid = forge.stack.agents.get("box")?.pid;
  const cpuTicks = (): number => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return Number(fields[11]) + Number(fields[12]);
  };
  const before = cpuTicks();
  const measuredS = 8;
  await sleep(measuredS * 1000);
  // The kernel counts CPU time in ticks of 10 ms, so ticks per second are the percentage of a core.
  // The agent must stay below 1 % although it sends ten times as many heartbeats here as by
  // default.
  const percent = (cpuTicks() - before) / measuredS;
  const rssKb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  expect(percent).toBeLessThan(1);
  expect(rssKb).toBeLessThan(60_000);
});

test("status shows its work, also from another process", async () => {
  const python = await pythonEnvironment(saySilently);
  const shown = execFileSync(python, ["-m", "forge_agent", "status"], {
    encoding: "utf8",
    env: {
      ...process.env,
      PYTHONPATH: pythonPath(),
      FORGE_AGENT_STATE: join(forge.stack.storeDir, "..", "agents"),
    },
  });
  expect(shown).toMatch(/^running as process \d+ since .*\n {2}box \(cpu\): idle since .*\n$/);
});

test("after SIGTERM it finishes its job and exits", async () => {
  const python = await pythonEnvironment(saySilently);
  const generator = join(checkoutRoot(), "dev", "sample-data", "generate.py");
  const out = join(forge.stack.storeDir, "artifacts", "samples", "more.parquet");
  execFileSync(python, [generator, "--rows", "15000", "--out", out]);
  const { job_id } = await forge.user.submit("audit", {
    dataset_uri: "forge://artifacts/samples/more.parquet",
  });
  await waitFor("progress", async () => ((await forge.user.job(job_id)).progress ?? 0) > 0);
  const agent = forge.stack.agents.get("box");
  agent?.signal("SIGTERM");
  expect((await forge.user.job(job_id)).status).toBe("running");
  expect(await agent?.exited).toBe(0);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 1 });
});
