import { z } from "zod";
import { RAW_DATASET } from "../../artifacts/artifact-form";
import { define } from "./declaration";
import { teacher, text } from "./fields";

const task = text.describe("the teacher's task, e.g. question answering");
const size = z.int().min(1).max(100_000_000).describe("how many rows to write");
const domain = text.describe("what the rows are about, e.g. law");
const style = text.describe("how the rows are written, e.g. concise").optional();

const fields = { task, size, teacher, domain: domain.optional(), style };

export const generate = define({
  type: "generate",
  payload: {
    fields,
    aliases: { num_samples: "size" },
    forms: [fields, { domain, num_samples: size, task: task.optional(), style }],
    complete(body, defaults) {
      if (body.domain === undefined) return;
      body.task ??= "synthesize";
      body.teacher ??= defaults.teacher;
    },
  },
  examples: {
    specification: {
      task: "question answering",
      size: 1000,
      teacher: "llama-3-70b",
      domain: "law",
    },
    sdk: { domain: "law", num_samples: 1000 },
  },
  artifact: RAW_DATASET,
  results: { dataset_id: "dataset id", dataset_uri: "dataset URI" },
  price: "generated_tokens",
  usage: {
    uses: ["tokens"],
    readsRows: false,
    rowsWritten: ({ size: rows }) => Number(rows),
    growsWith: "size",
  },
  details: ["teacher_model"],
  pipeline: { templates: ["synthetic"] },
  completion: "artifact",
  handler: { needsTorch: false },
  client: {
    summary: "Makes a dataset: give `task`, `size` and `teacher`, or `domain` and `num_samples`.",
    parameters: {
      byPlace: ["domain", "num_samples"],
      byName: ["task", "size", "teacher", "style"],
    },
    command: {
      about: "Make a dataset.",
      examples: ["--domain law --num-samples 1000 --wait"],
      options: [
        { name: "domain", field: "domain", help: "What it is about, e.g. law." },
        { name: "num-samples", field: "num_samples", help: "Rows to make." },
        { name: "task", field: "task", help: "What is asked of the teacher." },
        { name: "teacher", field: "teacher", help: "The model that writes them." },
        { name: "style", field: "style", help: "How they are written." },
      ],
    },
    dashboard: {
      about: "A teacher model writes a dataset.",
      step: "Make a dataset with a teacher model.",
      gate: "metrics.tokens_generated > 0",
      color: { light: "#3f74e6", dark: "#6a9bff" },
    },
  },
});
