import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ZodError } from "zod";
import { definePipeline, type PipelineDefinition } from "./definition";

const CONTEXT = { teacher: "default-teacher", artifactsRoot: "/srv/artifacts" };
const URI = "s3://team/x.parquet";

/** Validates like the API does. An error carries the field (`param`) and its message. */
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

test("the steps of a template refer to each other", () => {
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

test("references bypass skipped steps", () => {
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

test("a sweep trains and evaluates each variant and deploys the best", () => {
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

test("a step has its own options, and the pipeline's tags in addition", () => {
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
    "a cycle",
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
    "a step that needs itself",
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
  ["a duplicate name", { steps: [train, train] }, /two steps are named "train"/, "steps.1.name"],
  [
    "a dataset instead of a checkpoint",
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
    "an id instead of a URI",
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
    "an invalid reference in dataset_uri",
    { steps: [step("a", "audit", { dataset_uri: "${steps.a}" })] },
    /is no reference/,
    "steps.0.payload.dataset_uri",
  ],
  [
    "an unknown result field",
    { steps: [train, step("e", "evaluate", { checkpoint_id: from("train", "model_file") })] },
    /is not known to be one; its checkpoint_id is one/,
    "steps.1.payload.checkpoint_id",
  ],
  [
    "a missing payload field",
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
    "a partial reference",
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
    "a chosen step without choose",
    { steps: [train, step("e", "evaluate", { checkpoint_id: "${chosen.result.checkpoint_id}" })] },
    /has no "choose"/,
    "steps.1.payload.checkpoint_id",
  ],
  [
    "a missing field",
    byo({ params: { audit: { dataset_uri: URI }, train: { model: "m" } } }),
    /expected string/,
    "params.distill.teacher",
  ],
  [
    "a param that an earlier step provides",
    byo({ params: { ...(byo().params as object), evaluate: { model_id: "x" } } }),
    /comes from the step before/,
    "params.evaluate.model_id",
  ],
  [
    "a sweep field that an earlier step provides",
    byo({ sweep: [{ dataset_id: "x" }] }),
    /comes from the step before/,
    "sweep.0.dataset_id",
  ],
  [
    "a sweep without an evaluation",
    byo({ skip: ["evaluate"], sweep: [{}] }),
    /"evaluate" is skipped/,
    "sweep",
  ],
  ["params of a skipped step", byo({ skip: ["audit"] }), /no step "audit"/, "params.audit"],
  ["a step of another template", byo({ skip: ["generate"] }), /no step "generate"/, "skip.0"],
  [
    "all steps skipped",
    byo({ params: {}, skip: ["audit", "distill", "train", "evaluate", "deploy"] }),
    /every step is skipped/,
    "skip",
  ],
  [
    "more tags than a job may have",
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
    "a choice from an unknown step",
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
    "a gate of an unknown step",
    byo({ gates: [{ step: "evalute", condition: "scores.x > 1" }] }),
    /did you mean "evaluate"/,
    "gates.0.step",
  ],
  [
    "an invalid condition",
    byo({ gates: [{ step: "audit", condition: "exit()" }] }),
    /invalid condition/,
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
  [
    "two gates of a sweep's evaluations",
    byo({
      sweep: [{ epochs: 1 }],
      gates: [
        { step: "evaluate", condition: "scores.x > 1" },
        { step: "evaluate", condition: "scores.x > 2" },
      ],
    }),
    /two gates/,
    "gates.1",
  ],
  [
    "a gate of a sweep's evaluations, of which no step chooses",
    byo({
      sweep: [{ epochs: 1 }],
      skip: ["deploy"],
      gates: [{ step: "evaluate", condition: "scores.x > 1" }],
    }),
    /no step "evaluate"/,
    "gates.0.step",
  ],
  [
    "a gate of an unknown step after the gate of a sweep's evaluations",
    byo({
      sweep: [{ epochs: 1 }],
      gates: [
        { step: "evaluate", condition: "scores.x > 1" },
        { step: "x", condition: "scores.x > 1" },
      ],
    }),
    /no step "x"/,
    "gates.1.step",
  ],
  [
    "an invalid condition of a sweep's evaluations",
    byo({ sweep: [{ epochs: 1 }], gates: [{ step: "evaluate", condition: "exit()" }] }),
    /invalid condition/,
    "gates.0.condition",
  ],
  ["an approval of an unknown step", byo({ approvals: ["x"] }), /no step "x"/, "approvals.0"],
  [
    "a malformed URI",
    byo({ params: { audit: { dataset_uri: "s3://x" } } }),
    /./,
    "params.audit.dataset_uri",
  ],
  [
    "a file outside the artifacts directory",
    byo({ params: { audit: { dataset_uri: "file:///etc/passwd" } } }),
    /./,
    "params.audit.dataset_uri",
  ],
])("%s is rejected, and the error names the field", (_what, body, message, param) => {
  expect(() => define(body)).toThrow(
    expect.objectContaining({ message: expect.stringMatching(message), param }),
  );
});

test("the pipelines of the documentation are valid", () => {
  const text = readFileSync(join(__dirname, "..", "..", "docs", "pipelines.md"), "utf8");
  const json = [...text.matchAll(/^```json\n(.*?)^```/gms)].map(([, body = ""]) => body);
  const curl = [...text.matchAll(/-d '(\{\n.*?\n\})'/gs)].map(([, body = ""]) => body);
  const bodies = [...json, ...curl].map((body) => JSON.parse(body) as unknown);
  expect(bodies).toHaveLength(3);
  for (const body of bodies) {
    expect(define(body).steps.length).toBeGreaterThan(3);
  }
});

test("accepts 500 steps, rejects 501", () => {
  const many = (count: number) => ({
    steps: Array.from({ length: count }, (_, n) => step(`s${n}`, "audit", { dataset_uri: URI })),
  });
  expect(define(many(500)).steps).toHaveLength(500);
  expect(() => define(many(501))).toThrow(ZodError);
});
