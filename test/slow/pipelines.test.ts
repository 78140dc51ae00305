import { type Forge, startForge } from "../support/forge";
import { runUnderFire } from "../support/pipelines-under-fire";

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

/** test/faults/pipelines.test.ts has the short form. */
test("thirty pipelines go through while every process is killed in turn", async () => {
  const { kills } = await runUnderFire(forge, 30);
  process.stderr.write(`${kills.length} kills: ${kills.join(", ")}\n`);
}, 900_000);
