import { checkDatasetUri, ownedThingIn } from "./dataset-uri";

const ROOT = "/srv/forge/artifacts";

test.each([
  "s3://bucket/key.parquet",
  "spaces://bucket/a/b.jsonl",
  "s3://bucket/my data/100%25/..hidden",
  "s3://bucket/a//b/",
  "forge://artifacts/datasets/ds_1/raw.parquet",
  "file:///srv/forge/artifacts/x.parquet",
])("%s is well formed", (uri) => {
  expect(() => checkDatasetUri(uri, ROOT)).not.toThrow();
});

test.each([
  ["data.parquet", /scheme:\/\/bucket\/key/],
  ["http://host/x", /scheme "http"/],
  ["s3://bucket", /a bucket and a key/],
  ["s3://bucket/", /a bucket and a key/],
  ["s3:///key", /a bucket and a key/],
  ["s3://bucket/a/../b", /"\.\."/],
  ["s3://bucket/a/%2e%2e/b", /"\.\."/],
  ["s3://bucket/%zz", /"\.\."/],
  ["file:///etc/passwd", /below the artifacts/],
  ["file:///srv/forge/artifacts-other/x", /below the artifacts/],
  ["file://host/srv/forge/artifacts/x", /below the artifacts/],
])("%s is refused", (uri, why) => {
  expect(() => checkDatasetUri(uri, ROOT)).toThrow(why);
});

test.each([
  ["forge://artifacts/datasets/ds_1/raw.jsonl", "ds_1"],
  ["forge://artifacts//%64atasets//ds%5f1/raw.jsonl", "ds_1"],
  ["forge://artifacts/DATASETS/ds_1/raw.jsonl", "ds_1"],
  ["forge://artifacts/distill/ds_2/", "ds_2"],
  ["file:///srv/forge/artifacts/checkpoints/ckpt_1/model.pt", "ckpt_1"],
  ["file:///srv/forge/artifacts//logs/job_1/attempt-1.log", null],
  ["forge://artifacts/logs/job_1/attempt-1.log", null],
  ["forge://artifacts/samples/tasks.jsonl", undefined],
  ["s3://artifacts/datasets/ds_1/raw.jsonl", undefined],
])("%s lies in the folder of %s", (uri, id) => {
  expect(ownedThingIn(uri, `${ROOT}/`)).toBe(id);
});
