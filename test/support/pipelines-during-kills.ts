import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import type { Forge } from "./forge";
import { killInTurn, processesOf } from "./kill-in-turn";
import { writeHandlers } from "./own-handlers";
import { OVER, type Pipeline, readPipeline } from "./pipelines";

/**
 * Handlers that do no real work. They report fixed metrics, so that the cost of a pipeline is known
 * (COST_USD).
 */
const HANDLERS = {
  audit: `cp "$FORGE_INPUT_DATASET_URI" "$FORGE_OUTPUT_DIR/scored.jsonl"
echo '{"result": {}, "metrics": {"rows_processed": 1000}}' > "$FORGE_RESULT_FILE"`,
  distill: `cp "$FORGE_INPUT_DATASET_ID"/* "$FORGE_OUTPUT_DIR/"
echo '{"result": {}, "metrics": {"tokens_generated": 1000000}}' > "$FORGE_RESULT_FILE"`,
  train: `sleep 0.5; echo weights > "$FORGE_OUTPUT_DIR/model.pt"
echo '{"result": {}, "metrics": {"gpu_hours": 0.1}}' > "$FORGE_RESULT_FILE"`,
  evaluate: `echo '{}' > "$FORGE_OUTPUT_DIR/report.json"
echo '{"result": {"scores": {"overall": 0.9}}, "metrics": {"samples_evaluated": 100}}' > "$FORGE_RESULT_FILE"`,
};

/**
 * The cost of a pipeline: 0.20 for the rows, 0.30 for the tokens, 0.10 for the samples, nothing for
 * GPU hours on a machine without a GPU.
 */
const COST_USD = 0.2 + 0.3 + 0.1;

const AGENTS = ["left", "right"];

/**
 * Runs pipelines of short steps to their end while every process of Forge is killed in turn at
 * random moments and restarted. Then proves that each pipeline completed normally.
 */
export async function runDuringKills(forge: Forge, count: number): Promise<{ kills: string[] }> {
  const config = writeHandlers(forge, "fire", HANDLERS);
  const startAgent = (name: string) =>
    forge.stack.startAgent(name, { FORGE_AGENT_CONFIG: config, WORKER_SLOTS: "2" });
  for (const name of AGENTS) await startAgent(name);
  const uri = await uploadRow(forge);
  const { stack } = forge;
  const victims = [
    ...processesOf(forge),
    ...AGENTS.map((name) => ({
      name,
      kill: () => stack.agents.get(name)?.kill(),
      restart: () => startAgent(name),
    })),
  ];

  const ids = new Set<string>();
  const submitting = submitAll(forge, count, uri, ids);
  const areOver = async (): Promise<boolean> => {
    if (ids.size < count) return false;
    const pipelines = await Promise.all([...ids].map((id) => readPipeline(forge.user, id)));
    return pipelines.every(({ status }) => OVER.includes(status));
  };
  const kills = await killInTurn(victims, areOver);
  await submitting;
  await waitFor("the last ones", areOver, { timeoutMs: 60_000 });
  await proveAll(forge, [...ids]);
  return { kills };
}

async function uploadRow(forge: Forge): Promise<string> {
  const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": forge.user.key, "content-type": "application/x-ndjson" },
    body: '{"q": "why?"}\n',
  });
  return ((await response.json()) as { dataset_uri: string }).dataset_uri;
}

/**
 * Submits the pipelines one after another, with random pauses. Repeats a submission under the same
 * idempotency key until it succeeds.
 */
async function submitAll(
  forge: Forge,
  count: number,
  uri: string,
  ids: Set<string>,
): Promise<void> {
  const body = {
    template: "byo-data",
    params: {
      audit: { dataset_uri: uri },
      distill: { teacher: "t" },
      train: { model: "m", epochs: 1 },
    },
    gates: [{ step: "evaluate", condition: "scores.overall >= 0.7" }],
    skip: ["deploy"],
  };
  for (let n = 0; n < count; n++) {
    const id = await waitFor(
      "the submission to be taken",
      async () => {
        const headers = { "idempotency-key": `fire-${n}` };
        const answer = await forge.user.call<Pipeline>("POST", "/api/pipelines", body, headers);
        return answer.status === 201 && answer.body.pipeline_id;
      },
      { timeoutMs: 60_000, everyMs: 200 },
    );
    ids.add(id);
    await sleep(Math.random() * 500);
  }
}

async function proveAll(forge: Forge, ids: string[]): Promise<void> {
  for (const id of ids) {
    const { status, error, cost_usd: cost } = await readPipeline(forge.user, id);
    if (status !== "completed") throw new Error(`${id} is ${status}: ${error}`);
    if (Math.abs(cost - COST_USD) > 1e-9) throw new Error(`${id} cost ${cost}, not ${COST_USD}`);
  }
  const twice = await all(
    forge.ctx.pool,
    `select pipeline_id, pipeline_step, count(*) from jobs
     where pipeline_id = any($1) group by 1, 2 having count(*) <> 1`,
    [ids],
  );
  if (twice.length > 0) throw new Error(`ran twice: ${JSON.stringify(twice)}`);
  await forge.proveInvariants();
}
