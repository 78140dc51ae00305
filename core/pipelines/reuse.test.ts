import { isReusable, reuseKeyOf } from "./reuse";

const OWN = { artifactsRoot: "/srv/artifacts" };
const files = (sha256: string) => ({ files: [{ path: "raw.jsonl", sha256 }], verified: true });
const manifests: Record<string, ReturnType<typeof files>> = {
  ds_1: files("aa"),
  ds_2: files("aa"),
  ds_3: files("bb"),
  ds_unseen: { ...files("aa"), verified: false },
};
const work = (payload: Record<string, unknown>, params: Record<string, unknown> = {}) =>
  reuseKeyOf("train", payload, params, OWN, (id) => manifests[id]);

test("the same content is the same work, whatever its id", () => {
  const first = work({ dataset_id: "ds_1", model: "m", epochs: 3 });
  expect(work({ epochs: 3, model: "m", dataset_id: "ds_2" })).toBe(first);
  for (const other of [
    { dataset_id: "ds_3", model: "m", epochs: 3 },
    { dataset_id: "ds_1", model: "n", epochs: 3 },
    { dataset_id: "ds_1", model: "m", epochs: 4 },
  ]) {
    expect(work(other)).not.toBe(first);
  }
  expect(work({ dataset_id: "ds_1", model: "m", epochs: 3 }, { lr: 1 })).not.toBe(first);
});

test("a URI in our store is its artifact's content, and which file of it", () => {
  const uri = (id: string, file = "raw.jsonl"): string =>
    `forge://artifacts/datasets/${id}/${file}`;
  expect(work({ dataset_uri: uri("ds_1") })).toBe(work({ dataset_uri: uri("ds_2") }));
  const others = ["x", "ds_1.a", "ds_1.b", "ds_1/a", ""].map((file) => uri("ds_1", file));
  const escaped = ["a", "b"].map((file) => `forge://artifacts/datasets/ds%5F1/${file}`);
  const keys = [uri("ds_1"), ...others, ...escaped].map((each) => work({ dataset_uri: each }));
  expect(new Set(keys).size).toBe(8);
});

test("a checkpoint that is trained on from counts by its content, a base model by its name", () => {
  expect(work({ dataset_id: "ds_1", model: "ds_1" })).toBe(
    work({ dataset_id: "ds_1", model: "ds_2" }),
  );
  expect(work({ dataset_id: "ds_1", model: "a" })).not.toBe(
    work({ dataset_id: "ds_1", model: "b" }),
  );
});

test("what we have not seen is never the same", () => {
  expect(work({ dataset_uri: "s3://team/x.parquet" })).toBeNull();
  expect(work({ dataset_id: "ds_unseen" })).toBeNull();
  expect(work({ dataset_id: "only-the-worker-knows" })).toBeNull();
  expect(work({ checkpoint_id: "only-the-worker-knows" })).toBeNull();
  expect(isReusable("deploy")).toBe(false);
});
