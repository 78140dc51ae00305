import { artifactForm } from "../../artifacts/artifact-form";
import { define } from "./declaration";
import { CHECKPOINT_OPTION, checkpoint, name } from "./fields";

const benchmark = name
  .describe("a benchmark's name or a dataset's id, to score the checkpoint on")
  .optional();

const fields = { checkpoint_id: checkpoint, benchmark };

export const evaluate = define({
  type: "evaluate",
  payload: {
    fields,
    aliases: { model_id: "checkpoint_id" },
    forms: [fields, { model_id: checkpoint, benchmark }],
  },
  examples: {
    specification: { checkpoint_id: "ckpt_example" },
    sdk: { model_id: "ckpt_example", benchmark: "legalbench" },
  },
  artifact: artifactForm("eval", "evaluation_report", "eval_id", "eval", "evals"),
  results: { eval_id: "evaluation id" },
  describesCheckpoint: true,
  price: "samples",
  usage: { uses: ["samples", "tokens"], readsRows: true, counts: "samples_evaluated" },
  pipeline: { templates: ["byo-data", "synthetic"], takes: "checkpoint_id", sweep: "judged" },
  completion: "artifact",
  handler: { needsTorch: true },
  client: {
    summary: "Scores a checkpoint, given as `checkpoint_id` or `model_id`.",
    parameters: { byPlace: ["checkpoint_id", "benchmark"], byName: ["model_id"] },
    command: {
      about: "Score a checkpoint.",
      examples: ["--checkpoint ckpt_... --benchmark legalbench"],
      options: [
        CHECKPOINT_OPTION,
        { name: "benchmark", field: "benchmark", help: "What it is measured by." },
      ],
    },
    dashboard: {
      about: "A checkpoint is scored.",
      step: "Score the checkpoint.",
      gate: "scores.overall >= 0.7",
      color: { light: "#b93a74", dark: "#e87bab" },
    },
  },
});
