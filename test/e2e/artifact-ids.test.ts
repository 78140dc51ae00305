/**
 * A worker may choose the id of its artifact, so workers of two tenants may choose the same one.
 * Neither tenant may block the other's id, learn that it exists, or access the other's files.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GENERATED_ID } from "../../core/artifacts/artifacts";
import type { ApiClient, Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { maybeOne } from "../../platform/postgres/pool";
import { type Artifact, artifactOf, download, type Lineage, sha256 } from "../support/artifacts";
import { type Deployment, read, serving, until } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { ModelServer } from "../support/model-server";
import { createTenant } from "../support/tenants";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;
let alice: Owner;
let bob: Owner;

interface Owner {
  userId: string;
  user: ApiClient;
  worker: TestWorker;
}

beforeAll(async () => {
  forge = await startForge({ FORGE_SWEEP_INTERVAL_S: "1", FORGE_SWEEP_AFTER_S: "1" });
  [alice, bob] = [await owner("alice"), await owner("bob")];
});

afterEach(async () => await forge.endTest());

afterAll(async () => {
  await forge?.stop();
});

async function owner(userId: string): Promise<Owner> {
  const tenant = await createTenant(forge, userId);
  const worker = tenant.worker(`${userId}-box`);
  await worker.register();
  return { userId, user: tenant.user, worker };
}

const rowsOf = ({ userId }: Owner): string => `{"text":"made for ${userId}"}\n`;

/** Runs a job whose worker chooses this id for its artifact and uploads one file. */
async function make(
  { user, worker }: Owner,
  job: { type?: string; body?: object; idField?: string },
  id: string,
  content: string,
): Promise<Job> {
  const { type = "audit", body = AUDIT, idField = "dataset_id" } = job;
  const { job_id } = await user.submit(type, body);
  const dispatched = await worker.take();
  expect(await worker.upload(dispatched, "scored.jsonl", content)).toBe(201);
  const answer = await worker.complete(dispatched, {
    artifacts_uri: null,
    result: { [idField]: id },
  });
  expect(answer.status).toBe(200);
  return await untilEnded(user, job_id);
}

const artifactsOf = async (api: ApiClient, query = ""): Promise<Artifact[]> =>
  (await api.get<{ artifacts: Artifact[] }>(`/api/artifacts${query}`)).artifacts;

const contentOf = async (api: ApiClient, id: string, query = ""): Promise<string> =>
  (await download(api, `/api/artifacts/${id}/files/scored.jsonl${query}`)).bytes.toString("utf8");

test.each([
  ["dataset", { type: "audit", body: AUDIT, idField: "dataset_id" }],
  [
    "distilled dataset",
    {
      type: "distill",
      body: { dataset_id: "d", teacher: "t" },
      idField: "distilled_dataset_id",
    },
  ],
  ["report", { type: "evaluate", body: { checkpoint_id: "c" }, idField: "eval_id" }],
])("two tenants choose the same id for a %s, and each has its own", async (what, job) => {
  const id = `squad.${what.replace(" ", "-")}`;
  const first = await make(alice, job, id, rowsOf(alice));
  expect(first).toMatchObject({ status: "completed", result: { [job.idField]: id } });
  expect((await bob.user.call("GET", `/api/artifacts/${id}`)).status).toBe(404);
  const second = await make(bob, job, id, rowsOf(bob));
  expect(second).toMatchObject({ status: "completed", result: { [job.idField]: id }, error: null });
  for (const [owned, made] of [
    [alice, first],
    [bob, second],
  ] as const) {
    const artifact = await owned.user.get<Artifact>(`/api/artifacts/${id}`);
    expect(artifact).toMatchObject({
      artifact_id: id,
      source_jobs: [made.job_id],
      manifest: { artifact_id: id, user_id: owned.userId, verified: true },
    });
    expect(artifact.manifest.files[0]?.sha256).toBe(sha256(rowsOf(owned)));
    expect(await contentOf(owned.user, id)).toBe(rowsOf(owned));
  }
});

test("an id of another tenant gets the same response as an unused one", async () => {
  await make(alice, {}, "taken", rowsOf(alice));
  const [taken, free] = [
    await make(bob, {}, "taken", rowsOf(bob)),
    await make(bob, {}, "free", rowsOf(bob)),
  ];
  /**
   * Everything the API returns about a job and its artifact, without values that differ between any
   * two jobs.
   */
  const responses = async (job: Job, id: string): Promise<unknown> => {
    const said = { job, artifact: await bob.user.get<Artifact>(`/api/artifacts/${id}`) };
    const plain = JSON.stringify(said)
      .replaceAll(job.job_id, "JOB")
      // The URIs may differ. Folders in the store are named by artifact ids, so the second tenant
      // with the same id gets a folder with a generated name.
      .replaceAll(/artifacts\/datasets\/[^/"]+/g, "FOLDER")
      .replaceAll(id, "ID")
      .replaceAll(/(?:ds|att|req)_[0-9a-hjkmnp-tv-z]{26}/g, "MINTED")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME");
    return JSON.parse(plain);
  };
  expect(await responses(taken, "taken")).toEqual(await responses(free, "free"));
});

test("an id in the format of generated ids is refused, whether or not it exists", async () => {
  const { job_id } = await alice.user.submit("audit", AUDIT);
  const dispatched = await alice.worker.take();
  const minted = String(dispatched.output_ids.dataset_id);
  await alice.worker.complete(dispatched);
  await untilEnded(alice.user, job_id);
  const unusedId = `ds_${"0".repeat(26)}`;
  expect([minted, unusedId].every((id) => GENERATED_ID.test(id))).toBe(true);
  const [known, unknown] = [
    await make(bob, {}, minted, rowsOf(bob)),
    await make(bob, {}, unusedId, rowsOf(bob)),
  ];
  expect(known).toMatchObject({ status: "failed", error_code: "artifact_conflict" });
  expect(known.error?.replace(minted, unusedId)).toBe(unknown.error);
});

test("within a tenant an id is still unique", async () => {
  await make(alice, {}, "once", rowsOf(alice));
  expect(await make(alice, {}, "once", rowsOf(alice))).toMatchObject({
    status: "failed",
    error_code: "artifact_conflict",
  });
  // A tenant can't reuse an id for another kind of artifact either.
  const report = { type: "evaluate", body: { checkpoint_id: "c" }, idField: "eval_id" };
  expect((await make(alice, report, "once", "{}")).error_code).toBe("artifact_conflict");
});

test("a client can't choose the id of an upload", async () => {
  const upload = async (query: string) => {
    const response = await fetch(`${bob.user.baseUrl}/api/datasets${query}`, {
      method: "POST",
      headers: { "x-service-api-key": bob.user.key, "content-type": "application/x-ndjson" },
      body: rowsOf(bob),
    });
    return { status: response.status, body: (await response.json()) as { dataset_id?: string } };
  };
  expect((await upload("?dataset_id=mine")).status).toBe(400);
  const named = [await upload("?name=mine"), await upload("?name=mine")];
  const ids = named.map(({ body }) => body.dataset_id ?? "");
  expect(new Set(ids).size).toBe(2);
  expect(ids.every((id) => GENERATED_ID.test(id))).toBe(true);
});

test("a folder has its artifact's id, unless another tenant has that folder", async () => {
  const folderOf = async ({ user }: Owner, id: string): Promise<string | undefined> =>
    (await user.get<Artifact>(`/api/artifacts/${id}`)).uri.split("/").at(-2);
  await make(alice, {}, "layout", rowsOf(alice));
  await make(bob, {}, "layout", rowsOf(bob));
  expect(await folderOf(alice, "layout")).toBe("layout");
  expect(await folderOf(bob, "layout")).toMatch(GENERATED_ID);
  const datasets = join(forge.stack.storeDir, "artifacts", "datasets");
  for (const [owned, folder] of [
    [alice, "layout"],
    [bob, String(await folderOf(bob, "layout"))],
  ] as const) {
    expect(readFileSync(join(datasets, folder, "scored.jsonl"), "utf8")).toBe(rowsOf(owned));
    const manifest = readFileSync(join(datasets, folder, "manifest.json"), "utf8");
    expect(JSON.parse(manifest)).toMatchObject({ artifact_id: "layout", user_id: owned.userId });
  }
});

describe("references", () => {
  const inputsOf = async ({ user, worker }: Owner, body: object): Promise<Input[]> => {
    const { job_id } = await user.submit("train", { model: "m", ...body });
    const { inputs } = (await worker.take()) as unknown as { inputs: Input[] };
    await worker.fail({ job_id, attempt: 1 } as never);
    await untilEnded(user, job_id);
    return inputs;
  };
  interface Input {
    param: string;
    withheld?: boolean;
    files?: { path: string; sha256: string }[];
  }

  test("an id, and a URI with either id, resolve to the tenant's own artifact", async () => {
    const made = await make(alice, {}, "corpus", rowsOf(alice));
    const ofBob = await make(bob, {}, "corpus", rowsOf(bob));
    const { uri } = await artifactOf(alice.user, made.job_id);
    const ofAlice = { path: "scored.jsonl", sha256: sha256(rowsOf(alice)) };
    for (const body of [
      { dataset_id: "corpus" },
      { dataset_uri: uri },
      { dataset_uri: `${uri}scored.jsonl` },
      { dataset_uri: "forge://artifacts/datasets/corpus/" },
      { dataset_uri: "forge://artifacts/datasets/corpus/scored.jsonl" },
    ]) {
      const [input] = await inputsOf(alice, body);
      expect(input?.files).toMatchObject([{ path: ofAlice.path }]);
      if (input?.files?.[0]?.sha256) expect(input.files[0].sha256).toBe(ofAlice.sha256);
    }
    // The URI of Alice's folder contains the id `corpus`, which Bob chose, too. So for Bob, it
    // resolves to his own artifact.
    for (const dataset_uri of [uri, `${uri}scored.jsonl`]) {
      const [input] = await inputsOf(bob, { dataset_uri });
      expect(input?.files).toMatchObject([{ size_bytes: rowsOf(bob).length }]);
    }
    // For Alice, the generated name of Bob's folder resolves to no artifact.
    const { uri: minted } = await artifactOf(bob.user, ofBob.job_id);
    for (const dataset_uri of [minted, `${minted}scored.jsonl`]) {
      expect(await inputsOf(alice, { dataset_uri })).toMatchObject([{ withheld: true }]);
    }
  });

  test("derived artifacts, lineage and deletion stay within the tenant", async () => {
    const made = await make(alice, {}, "source", rowsOf(alice));
    await make(bob, {}, "source", rowsOf(bob));
    const { uri } = await artifactOf(alice.user, made.job_id);
    const derived = { type: "audit", body: { dataset_uri: `${uri}scored.jsonl` } };
    await make(alice, derived, "derived", rowsOf(alice));
    const artifact = await alice.user.get<Artifact>("/api/artifacts/derived");
    expect(artifact.manifest.source_artifacts).toEqual(["source"]);
    const lineage = await alice.user.get<Lineage>("/api/artifacts/source/lineage");
    expect(lineage.nodes.filter(({ type }) => type === "artifact").map(({ id }) => id)).toEqual([
      "source",
      "derived",
    ]);
    expect(lineage.nodes.filter(({ type }) => type === "external")).toMatchObject([
      { id: AUDIT.dataset_uri },
    ]);
    expect(await alice.user.call("DELETE", "/api/artifacts/source")).toMatchObject({
      status: 409,
      body: { error: { code: "artifact_in_use", details: { dependents: [{ id: "derived" }] } } },
    });
    // An unfinished job that reads the artifact's files also prevents its deletion.
    const { job_id: waiting } = await alice.user.submit("train", {
      dataset_uri: `${uri}scored.jsonl`,
      model: "m",
    });
    const refusal = await alice.user.call("DELETE", "/api/artifacts/source");
    expect(JSON.stringify(refusal.body)).toContain(waiting);
    await alice.user.post(`/api/jobs/${waiting}/cancel`, {});
    expect((await bob.user.call("DELETE", "/api/artifacts/source")).status).toBe(200);
    await waitFor("Bob's bytes to go", async () =>
      maybeOne(
        forge.ctx.pool,
        "select from artifacts where user_id = 'bob' and given_id = 'source' and bytes_removed_at < now()",
      ),
    );
    expect(await contentOf(alice.user, "source")).toBe(rowsOf(alice));
    expect((await bob.user.call("GET", "/api/artifacts/source/files/scored.jsonl")).status).toBe(
      410,
    );
  });

  test("a preview shows the tenant's own table, even if the same bytes were read before", async () => {
    const same = '{"text":"the same"}\n';
    for (const each of [alice, bob]) {
      await make(each, {}, "seen", same);
      const preview = await each.user.get(`/api/artifacts/seen/preview`);
      expect(preview).toMatchObject({ artifact_id: "seen", rows: [{ text: "the same" }] });
    }
  });
});

describe("a deployment", () => {
  /** Runs a deploy job whose worker serves a model under an id that the worker chose. */
  async function deploy({ user, worker }: Owner, id: string): Promise<ModelServer> {
    const { job_id } = await user.submit("deploy", { checkpoint_id: "c" });
    const dispatched = await worker.take();
    const model = await ModelServer.start(worker.id);
    const result = { deployment_id: id, inference_url: model.url };
    expect((await worker.complete(dispatched, { artifacts_uri: null, result })).status).toBe(200);
    expect(await untilEnded(user, job_id)).toMatchObject({ status: "completed", result });
    return model;
  }

  test("with the same id exists for two tenants at once; each calls, sees and stops its own", async () => {
    const models: ModelServer[] = [];
    try {
      for (const each of [alice, bob]) {
        models.push(await deploy(each, "chat"));
        expect(await each.worker.heartbeat({ deployments: ["chat"] })).toMatchObject({
          commands: [],
        });
      }
      for (const { user, worker } of [alice, bob]) {
        expect(await read(user, "chat")).toMatchObject({ deployment_id: "chat", status: "active" });
        expect(serving(await read(user, "chat"))).toEqual([worker.id]);
        const { body } = await user.call<{ model: string }>(
          "GET",
          "/api/deployments/chat/v1/models",
        );
        expect(body.model).toBe(worker.id);
      }
      expect(await forge.admin.call("GET", "/api/deployments/chat")).toMatchObject({
        status: 400,
        body: { error: { code: "ambiguous_id", param: "user_id" } },
      });
      const path = "/api/deployments/chat?user_id=bob";
      expect(await forge.admin.get<Deployment>(path)).toMatchObject({ user_id: "bob" });
      await bob.user.post("/api/deployments/chat/stop", {});
      expect(await bob.worker.heartbeat({ deployments: ["chat"] })).toMatchObject({
        commands: [{ type: "stop_deployment", deployment_id: "chat" }],
      });
      await waitFor("it to be gone", async () => {
        await bob.worker.heartbeat({ deployments: [] });
        return (await read(bob.user, "chat")).status === "stopped";
      });
      expect(await alice.worker.heartbeat({ deployments: ["chat"] })).toMatchObject({
        commands: [],
      });
      expect(await read(alice.user, "chat")).toMatchObject({ status: "active" });
    } finally {
      await Promise.all(models.map((model) => model.stop()));
      await forge.admin.post("/api/deployments/chat/stop?user_id=alice", {});
      await until(forge.admin, "chat?user_id=alice", "stopped", ({ status }) => {
        alice.worker.heartbeat({ deployments: [] }).catch(() => undefined);
        return status === "stopped";
      });
    }
  }, 60_000);
});

test("for an ambiguous id an admin names the tenant or the folder", async () => {
  const made = await make(alice, {}, "shared-name", rowsOf(alice));
  expect(await contentOf(forge.admin, "shared-name")).toBe(rowsOf(alice));
  const ofBob = await make(bob, {}, "shared-name", rowsOf(bob));
  const folder = (await artifactOf(alice.user, made.job_id)).uri.split("/").at(-2);
  for (const rest of [
    "",
    "/manifest",
    "/files",
    "/files/scored.jsonl",
    "/archive",
    "/lineage",
    "/preview",
  ]) {
    const path = `/api/artifacts/shared-name${rest}`;
    expect(await forge.admin.call("GET", path)).toMatchObject({
      status: 400,
      body: {
        error: {
          code: "ambiguous_id",
          param: "user_id",
          details: { owners: [{ user_id: "alice", storage_id: folder }, { user_id: "bob" }] },
        },
      },
    });
    expect((await download(forge.admin, `${path}?user_id=bob`)).status).toBe(200);
    expect((await bob.user.call("GET", `${path}?user_id=alice`)).status).toBe(403);
  }
  expect((await forge.admin.call("DELETE", "/api/artifacts/shared-name")).status).toBe(400);
  expect(await contentOf(forge.admin, "shared-name", "?user_id=bob")).toBe(rowsOf(bob));
  const minted = (await artifactOf(bob.user, ofBob.job_id)).uri.split("/").at(-2);
  expect(await contentOf(forge.admin, String(minted))).toBe(rowsOf(bob));
  const both = await artifactsOf(forge.admin, "?limit=200");
  expect(both.filter(({ artifact_id: id }) => id === "shared-name")).toHaveLength(2);
});
