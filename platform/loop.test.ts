import { waitFor } from "../dev/stack/wait";
import { createLogger } from "./logger";
import { Loop } from "./loop";
import { Metrics } from "./metrics/metrics";
import { createPool } from "./postgres/pool";

const logger = createLogger("silent");
/** This pool never connects, because no test sends a query to it. */
const pool = createPool({ connectionString: "postgres://nowhere", max: 1, timeoutMs: 1 }, logger);

test("a failed run is counted as a failure, and the loop continues", async () => {
  const metrics = new Metrics(pool);
  let failures = 0;
  let isHealthy = false;
  const work = async (): Promise<void> => {
    if (isHealthy) return;
    failures += 1;
    throw new Error("not yet");
  };
  const loop = new Loop("some", 1, work, { logger, metrics });
  loop.start();
  await waitFor("two failures", () => failures > 1);
  const failing = await metrics.text();
  expect(failing).not.toContain('forge_loop_last_success_timestamp_seconds{loop="some"}');
  isHealthy = true;
  await waitFor("a success", async () =>
    (await metrics.text()).includes('forge_loop_last_success_timestamp_seconds{loop="some"}'),
  );
  await loop.stop();
  expect(await metrics.text()).toContain(`forge_loop_failures_total{loop="some"} ${failures}`);
});
