import type { Manifest } from "@forge/sdk";
import { compareManifests } from "./differences";

const manifest = (more: object): Manifest =>
  ({
    artifact_type: "checkpoint",
    artifact_id: "ckpt_1",
    job_params: {},
    metrics: {},
    files: [],
    base_model: "m",
    lr: 0.1,
    ...more,
  }) as unknown as Manifest;

const rows = (a: object, b: object, title: string) =>
  compareManifests(manifest(a), manifest(b)).find((group) => group.title === title)?.rows;

test("parameters are compared by their dotted names, and one may be missing", () => {
  const a = { job_params: { epochs: 1, lora: { rank: 8, alpha: 16 } } };
  const b = { job_params: { epochs: 1, lora: { rank: 16, alpha: 16 }, seed: 7 } };
  expect(rows(a, b, "Parameters")).toEqual([
    { name: "epochs", a: 1, b: 1, isEqual: true },
    { name: "lora.rank", a: 8, b: 16, isEqual: false },
    { name: "lora.alpha", a: 16, b: 16, isEqual: true },
    { name: "seed", a: undefined, b: 7, isEqual: false },
  ]);
});

test("ids that always differ are left out, and so are empty groups", () => {
  const groups = compareManifests(manifest({}), manifest({ artifact_id: "ckpt_2", lr: 0.2 }));
  expect(groups.map(({ title }) => title)).toEqual(["Facts"]);
  expect(groups[0]?.rows.filter(({ isEqual }) => !isEqual)).toEqual([
    { name: "lr", a: 0.1, b: 0.2, isEqual: false },
  ]);
});

test("a tenant may use any name", () => {
  const a = { metrics: JSON.parse('{"__proto__": 1, "constructor": 2}') as object };
  expect(rows(a, {}, "Metrics and scores")).toEqual([
    { name: "__proto__", a: 1, b: undefined, isEqual: false },
    { name: "constructor", a: 2, b: undefined, isEqual: false },
  ]);
});
