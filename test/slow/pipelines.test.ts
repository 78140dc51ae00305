import { type Forge, startForge } from "../support/forge";
import { runDuringKills } from "../support/pipelines-during-kills";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    { FORGE_HEARTBEAT_TIMEOUT_S: "4", HEARTBEAT_INTERVAL: "0.5", FORGE_RECONCILE_AFTER_S: "2" },
    { split: true },
  );
});

afterAll(async () => {
  await forge?.stop();
});

/** A shorter form of this test is in test/faults/pipelines.test.ts. */
test("thirty pipelines complete while every process is killed in turn", async () => {
  const { kills } = await runDuringKills(forge, 30);
  process.stderr.write(`${kills.length} kills: ${kills.join(", ")}\n`);
}, 900_000);
