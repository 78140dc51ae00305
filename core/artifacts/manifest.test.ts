import fc from "fast-check";
import { JOB_TYPES } from "../jobs/job-types";
import { describeArtifact, type ManifestFacts } from "./manifest";
import { manifestSchema } from "./manifest-schema";

const FIELDS = [
  "num_rows",
  "schema",
  "quality",
  "dataset_uri",
  "checkpoint_uri",
  "git_commit",
  "parameter_count",
  "architecture",
  "training_steps",
  "optimizer",
  "lr",
  "datasets",
  "scores",
  "inference_url",
  "scaling",
  "constructor",
  "__proto__",
];

/** Any JSON value, with any characters. */
const anything = fc.oneof(
  fc.jsonValue({ stringUnit: "binary" }).map((value) => value as unknown),
  fc.string({ unit: "binary", minLength: 400, maxLength: 600 }).map((text) => text.repeat(3)),
  fc.dictionary(
    fc.constantFrom(
      "columns",
      "overall",
      "clarity_mean",
      "constructor",
      "toString",
      "min_replicas",
    ),
    fc.jsonValue({ stringUnit: "binary" }).map((value) => value as unknown),
  ),
  fc.constantFrom<unknown>(-1, 1.5, 1e308, Number.MAX_SAFE_INTEGER + 2, "", "\ud800", "a\0b", null),
);

const reportedResults = fc.dictionary(fc.constantFrom(...FIELDS), anything);

const facts = (
  jobType: ManifestFacts["jobType"],
  result: Record<string, unknown>,
): ManifestFacts => ({
  artifactId: "ds_1",
  storageId: "ds_1",
  jobType,
  jobId: "job_1",
  userId: "team",
  createdBy: "alice",
  createdAt: "2026-11-22T00:00:00.000Z",
  attempt: 1,
  workerId: "w",
  payload: { epochs: 3 },
  params: {},
  result,
  metrics: {},
  notes: null,
  costUsd: 0.1,
  sourceArtifacts: [],
  files: [{ path: "raw.jsonl", size_bytes: 3, sha256: "0".repeat(64) }],
  pipeline: null,
  table: { numRows: 2, columns: [{ name: "a", dtype: "int64" }], unreadable: [], isRead: true },
});

test("for any worker result, the manifest matches its schema and can be stored in Postgres", () => {
  fc.assert(
    fc.property(fc.constantFrom(...JOB_TYPES), reportedResults, (jobType, result) => {
      const manifest = describeArtifact(facts(jobType, result));
      expect(manifestSchema.safeParse(manifest).error).toBeUndefined();
      const strings: string[] = [];
      JSON.stringify(manifest, (key, value: unknown) => {
        strings.push(key);
        if (typeof value === "string") strings.push(value);
        return value;
      });
      const halves = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
      expect(strings.filter((text) => text.includes("\0") || halves.test(text))).toEqual([]);
    }),
    { numRuns: process.env.TEST_SLOW ? 2_000 : 300 },
  );
});

test("the same facts give the same manifest, and correct results have no contradictions", () => {
  const honest = { num_rows: 2, schema: { columns: [{ name: "a", dtype: "long" }] } };
  const [one, other] = [1, 2].map(() => describeArtifact(facts("audit", honest)));
  expect(one).toEqual(other);
  expect(one).toMatchObject({ num_rows: 2, contradictions: [], verified: true });
});
