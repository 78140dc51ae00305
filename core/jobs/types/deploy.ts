import { z } from "zod";
import { artifactForm } from "../../artifacts/artifact-form";
import { DEPLOYMENT_TYPE, MAX_REPLICAS } from "../../deployments/workflow";
import { InvalidRequest } from "../../errors";
import { define } from "./declaration";
import { CHECKPOINT_OPTION, checkpoint, name } from "./fields";

const replicas = z.int().min(1).max(MAX_REPLICAS).optional();

const others = {
  region: name.describe("a tag that the worker must have").optional(),
  min_replicas: replicas.describe("minimum number of replicas; 1 by default"),
  max_replicas: replicas.describe(
    "maximum number of replicas, if suitable workers are idle; by default `min_replicas`",
  ),
};

const fields = { checkpoint_id: checkpoint, ...others };

export const deploy = define({
  type: DEPLOYMENT_TYPE,
  payload: {
    fields,
    aliases: { model_id: "checkpoint_id" },
    forms: [fields, { model_id: checkpoint, ...others }],
    check: requireOrder,
  },
  examples: {
    specification: { checkpoint_id: "ckpt_example" },
    sdk: { model_id: "ckpt_example", region: "eu-west-1" },
  },
  artifact: artifactForm("deployment", "deployment", "deployment_id", "dep", "deployments"),
  results: { deployment_id: "deployment id" },
  describesCheckpoint: true,
  price: "monthly",
  usage: { uses: [], readsRows: false },
  pipeline: { templates: ["byo-data", "synthetic"], takes: "checkpoint_id", sweep: "chosen" },
  completion: "deployment",
  handler: { needsTorch: true },
  client: {
    summary: "Serves a checkpoint, given as `checkpoint_id` or `model_id`.",
    parameters: {
      byPlace: ["checkpoint_id", "region"],
      byName: ["model_id", "min_replicas", "max_replicas"],
    },
    command: {
      about: "Serve a checkpoint.",
      examples: ["--checkpoint ckpt_... --wait"],
      options: [
        CHECKPOINT_OPTION,
        { name: "region", field: "region", help: "Where it is served." },
        { name: "min-replicas", field: "min_replicas", help: "Copies, at least." },
        { name: "max-replicas", field: "max_replicas", help: "Copies, at most." },
      ],
    },
    dashboard: {
      about: "A checkpoint is served at an address, until you stop it.",
      step: "Serve the checkpoint until someone stops it.",
      gate: "metrics.gpu_hours < 1",
      color: { light: "#6b737d", dark: "#98a1ab" },
    },
  },
});

function requireOrder({ min_replicas: min = 1, max_replicas: max }: Record<string, unknown>): void {
  if (max === undefined || Number(min) <= Number(max)) return;
  const message = `"min_replicas" (${min}) is more than "max_replicas" (${max})`;
  throw new InvalidRequest(message, "min_replicas");
}
