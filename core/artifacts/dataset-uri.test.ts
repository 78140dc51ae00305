import fc from "fast-check";
import { artifactIdIn, checkDatasetUri } from "./dataset-uri";
import { DATASET_URI } from "./uri-pattern";

const ROOT = "/srv/forge/artifacts";

test("percent-escapes are accepted exactly if they decode to UTF-8", () => {
  const byte = fc.integer({ min: 0x20, max: 0xff }).map((n) => `%${n.toString(16)}`);
  const bytes = fc.array(byte, { minLength: 1, maxLength: 4 }).map((list) => list.join(""));
  const text = fc.string({ unit: "grapheme-composite", minLength: 1 });
  const escaped = fc.oneof(
    bytes,
    text.map((each) => encodeURIComponent(each)),
  );
  fc.assert(
    fc.property(escaped, (each) => {
      fc.pre(!/%(2[ef]|5c)|\./i.test(each));
      expect([each, DATASET_URI.test(`s3://bucket/x${each}`)]).toEqual([each, isDecodable(each)]);
    }),
    { numRuns: 2_000 },
  );
});

function isDecodable(escaped: string): boolean {
  try {
    return decodeURIComponent(escaped) !== undefined;
  } catch {
    return false;
  }
}

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
  ["s3://bucket/%zz", /escape/],
  ["s3://bucket/%ff%fe", /escape/],
  ["forge://artifacts/datasets/%c0%ae%c0%ae/x", /escape/],
  ["file:///etc/passwd", /below the artifacts/],
  ["file:///srv/forge/artifacts-other/x", /below the artifacts/],
  ["file://host/srv/forge/artifacts/x", /below the artifacts/],
])("%s is rejected", (uri, why) => {
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
  ["forge://uploads/job_1/attempt-1/artifact-x", null],
  ["forge://billing/records/team/job_1.json", null],
  ["s3://forge-data/artifacts/datasets/ds_1/raw.jsonl", "ds_1"],
  ["s3://forge-data//runs/job_1/attempt-1/x", null],
  ["s3://forge-data-of-another/artifacts/datasets/ds_1/raw.jsonl", undefined],
  ["s3://artifacts/datasets/ds_1/raw.jsonl", undefined],
])("%s belongs to artifact %s", (uri, id) => {
  const own = { artifactsRoot: `${ROOT}/`, bucketUri: "s3://forge-data" };
  expect(artifactIdIn(uri, own)).toBe(id);
});
