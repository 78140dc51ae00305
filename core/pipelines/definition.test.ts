import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ZodError } from "zod";
import { definePipeline, type PipelineDefinition } from "./definition";

const CONTEXT = { teacher: "default-teacher", artifactsRoot: "/srv/artifacts" };
const URI = "s3://team/x.parquet";

/** As a request is read; a fault as its place and words. */
function define(body: unknown): PipelineDefinition {
  return definePipeline(body, CONTEXT, (_type, at, run) => {
    try {
      return run();
    } catch (error) {
      const issue = error instanceof ZodError ? error.issues[0] : undefined;
      const param = issue ? issue.path.join(".") : (error as { param?: string }).param;
      const message = issue?.message ?? (error as Error).message;
      throw Object.assign(new Error(message), { param: `${at.payload}.${param}` });
    }
  });
}

const byo = (more: object = {}): Record<string, unknown> => ({
  template: "byo-data",
  params: { audit: { dataset_uri: URI }, distill: { teacher: "t" }, train: { model: "m" } },
  ...more,
});

const step = (name: string, job_type: string, payload: object, more: object = {}) => ({
  name,
  job_type,
  payload,
  ...more,
});
const train = step("train", "train", { dataset_uri: URI, model: "m" });
const from = (name: string, field: string): string => `\${steps.${name}.result.${field}}`;

test("a template's steps are wired to each other", () => {
  const { steps } = define(byo());
  expect(steps.map(({ name, needs, payload }) => [name, needs, payload])).toEqual([
    ["audit", [], { dataset_uri: URI }],
    ["distill", ["audit"], { dataset_id: from("audit", "dataset_id"), teacher: "t" }],
    [
      "train",
      ["distill"],
      { dataset_id: from("distill", "distilled_dataset_id"), model: "m", epochs: 3 },
    ],
    ["evaluate", ["train"], { checkpoint_id: from("train", "checkpoint_id") }],
    ["deploy", ["evaluate", "train"], { checkpoint_id: from("train", "checkpoint_id") }],
  ]);
});

test("what is skipped is wired around", () => {
  const { steps } = define({
    template: "synthetic",
    params: { generate: { domain: "law", num_samples: 5 }, train: { model: "m" } },
    skip: ["audit", "distill", "deploy"],
  });
  expect(steps.map(({ name, payload }) => [name, payload.dataset_id ?? null])).toEqual([
    ["generate", null],
    ["train", from("generate", "dataset_id")],
    ["evaluate", null],
  ]);
});

test("a sweep is a training and an evaluation for each, and the best is deployed", () => {
  const { steps } = define(
    byo({
      sweep: [{ epochs: 1 }, { params: { lr: 0.1 } }],
      gates: [{ step: "evaluate", condition: "scores.overall > 0.5" }],
    }),
  );
  expect(steps.map(({ name }) => name)).toEqual([
    "audit",
    "distill",
    "train-1",
    "train-2",
    "evaluate-1",
    "evaluate-2",
    "deploy",
  ]);
  expect(steps.at(-1)).toMatchObject({
    choose: {
      from: ["evaluate-1", "evaluate-2"],
      by: "scores.overall",
      order: "highest",
      where: "scores.overall > 0.5",
    },
    payload: { checkpoint_id: "${chosen.payload.checkpoint_id}" },
  });
  expect(steps.filter(({ optional }) => optional).map(({ name }) => name)).toHaveLength(4);
  expect(steps[3]).toMatchObject({ payload: { epochs: 3 }, options: { params: { lr: 0.1 } } });
  expect(steps[5]?.payload).toEqual({ checkpoint_id: from("train-2", "checkpoint_id") });
});

test("options of a step are its own, and tags those of the pipeline as well", () => {
  const given = { model: "m", resources: { gpu: 2 }, timeout_s: 60, max_attempts: 1, tags: ["b"] };
  const params = { ...(byo().params as object), train: given };
  const { steps } = define(byo({ tags: ["a"], params }));
  expect(steps[2]?.options).toMatchObject({
    resources: { gpu: 2 },
    timeout_s: 60,
    max_attempts: 1,
    tags: ["a", "b"],
  });
});

test.each<[string, unknown, RegExp, string]>([
  [
    "a circle",
    {
      steps: [
        step("a", "train", { dataset_uri: URI, model: "m" }, { needs: ["b"] }),
        step("b", "evaluate", { checkpoint_id: from("a", "checkpoint_id") }),
      ],
    },
    /a → b → a/,
    "steps",
  ],
  [
    "itself",
    { steps: [step("a", "audit", { dataset_uri: URI }, { needs: ["a"] })] },
    /a → a/,
    "steps",
  ],
  [
    "an unknown name",
    { steps: [train, step("e", "evaluate", { checkpoint_id: from("trian", "checkpoint_id") })] },
    /no step "trian"; did you mean "train"/,
    "steps.1.payload.checkpoint_id",
  ],
  ["two of one name", { steps: [train, train] }, /two steps are called "train"/, "steps.1.name"],
  [
    "a dataset for a checkpoint",
    {
      steps: [
        step("audit", "audit", { dataset_uri: URI }),
        step("e", "evaluate", { checkpoint_id: from("audit", "dataset_id") }),
      ],
    },
    /"checkpoint_id" takes a checkpoint id, and result\.dataset_id of step "audit" \(audit\) is a dataset id/,
    "steps.1.payload.checkpoint_id",
  ],
  [
    "an id for a URI",
    {
      steps: [
        step("audit", "audit", { dataset_uri: URI }),
        step("again", "audit", { dataset_uri: from("audit", "dataset_id") }),
      ],
    },
    /takes a dataset URI.*its dataset_uri is one/,
    "steps.1.payload.dataset_uri",
  ],
  [
    "a field that nobody knows",
    { steps: [train, step("e", "evaluate", { checkpoint_id: from("train", "model_file") })] },
    /is not known to be one; its checkpoint_id is one/,
    "steps.1.payload.checkpoint_id",
  ],
  [
    "a payload that it has not",
    {
      steps: [
        train,
        step("e", "evaluate", { checkpoint_id: "${steps.train.payload.checkpoint_id}" }),
      ],
    },
    /has no "checkpoint_id" in its payload/,
    "steps.1.payload.checkpoint_id",
  ],
  [
    "half a reference",
    {
      steps: [
        train,
        step("e", "evaluate", { checkpoint_id: "x-${steps.train.result.checkpoint_id}" }),
      ],
    },
    /is no reference/,
    "steps.1.payload.checkpoint_id",
  ],
  [
    "a choice from nothing",
    { steps: [train, step("e", "evaluate", { checkpoint_id: "${chosen.result.checkpoint_id}" })] },
    /chooses from no steps/,
    "steps.1.payload.checkpoint_id",
  ],
  [
    "a missing field",
    byo({ params: { audit: { dataset_uri: URI }, train: { model: "m" } } }),
    /expected string/,
    "params.distill.teacher",
  ],
  [
    "a field that comes from a step",
    byo({ params: { ...(byo().params as object), evaluate: { model_id: "x" } } }),
    /comes from the step before/,
    "params.evaluate.model_id",
  ],
  [
    "the same in a sweep",
    byo({ sweep: [{ dataset_id: "x" }] }),
    /comes from the step before/,
    "sweep.0.dataset_id",
  ],
  [
    "a sweep that nobody compares",
    byo({ skip: ["evaluate"], sweep: [{}] }),
    /"evaluate" is skipped/,
    "sweep",
  ],
  ["a step that is skipped", byo({ skip: ["audit"] }), /no step "audit"/, "params.audit"],
  ["a step of another template", byo({ skip: ["generate"] }), /no step "generate"/, "skip.0"],
  [
    "everything skipped",
    byo({ params: {}, skip: ["audit", "distill", "train", "evaluate", "deploy"] }),
    /every step is skipped/,
    "skip",
  ],
  [
    "tags beyond what a job may have",
    byo({
      tags: Array.from({ length: 20 }, (_, n) => `p${n}`),
      params: {
        ...(byo().params as object),
        train: { model: "m", tags: Array.from({ length: 20 }, (_, n) => `s${n}`) },
      },
    }),
    /over 32 tags/,
    "params.train.tags",
  ],
  [
    "a choice from nobody",
    {
      steps: [
        train,
        step("d", "deploy", { checkpoint_id: "c" }, { choose: { from: ["x"], by: "scores.x" } }),
      ],
    },
    /no step "x"/,
    "steps.1.choose.from",
  ],
  [
    "a gate of nobody's",
    byo({ gates: [{ step: "evalute", condition: "scores.x > 1" }] }),
    /did you mean "evaluate"/,
    "gates.0.step",
  ],
  [
    "a gate that is none",
    byo({ gates: [{ step: "audit", condition: "exit()" }] }),
    /can't be read/,
    "gates.0.condition",
  ],
  [
    "two gates of one step",
    byo({
      gates: [
        { step: "audit", condition: "scores.x > 1" },
        { step: "audit", condition: "scores.x > 2" },
      ],
    }),
    /two gates/,
    "gates.1",
  ],
  ["an approval of nobody's", byo({ approvals: ["x"] }), /no step "x"/, "approvals.0"],
  [
    "a URI of no form",
    byo({ params: { audit: { dataset_uri: "s3://x" } } }),
    /./,
    "params.audit.dataset_uri",
  ],
  [
    "a file that is not ours",
    byo({ params: { audit: { dataset_uri: "file:///etc/passwd" } } }),
    /./,
    "params.audit.dataset_uri",
  ],
])("%s is refused, with its place", (_what, body, message, param) => {
  expect(() => define(body)).toThrow(
    expect.objectContaining({ message: expect.stringMatching(message), param }),
  );
});

test("the documentation's pipelines are taken", () => {
  const text = readFileSync(join(__dirname, "..", "..", "docs", "pipelines.md"), "utf8");
  const json = [...text.matchAll(/^```json\n(.*?)^```/gms)].map(([, body = ""]) => body);
  const curl = [...text.matchAll(/-d '(\{\n.*?\n\})'/gs)].map(([, body = ""]) => body);
  const bodies = [...json, ...curl].map((body) => JSON.parse(body) as unknown);
  expect(bodies).toHaveLength(3);
  for (const body of bodies) {
    expect(define(body).steps.length).toBeGreaterThan(3);
  }
});

test("five hundred steps are taken, and one more is not", () => {
  const many = (count: number) => ({
    steps: Array.from({ length: count }, (_, n) => step(`s${n}`, "audit", { dataset_uri: URI })),
  });
  expect(define(many(500)).steps).toHaveLength(500);
  expect(() => define(many(501))).toThrow(ZodError);
});
