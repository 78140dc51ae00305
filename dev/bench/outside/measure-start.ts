import { rmSync } from "node:fs";
import { join } from "node:path";
import { ApiClient } from "../../api-client";
import { pythonEnvironment } from "../../stack/python";
import { saySilently } from "../../stack/say";
import { Stack } from "../../stack/stack";
import { waitFor } from "../../stack/wait";
import { type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import type { Stage } from "./stage";

/**
 * P10: time from the start of a stack until its agent can get jobs. All dependencies are installed
 * before the start, but the home directory is empty.
 */
export async function measureStart(stage: Stage, { starts }: Scale): Promise<Row[]> {
  await pythonEnvironment(saySilently, ["runtime"]);
  const seconds: number[] = [];
  while (seconds.length < starts) {
    const home = join(stage.home, `start-${seconds.length}`);
    const began = performance.now();
    const stack = new Stack({ home, agents: 1, say: saySilently });
    await stage.startStack(stack);
    try {
      await waitFor("the agent to register", () => isAgentReady(stack), { everyMs: 20 });
      seconds.push((performance.now() - began) / 1000);
    } finally {
      await stage.stopStack(stack);
      rmSync(home, { recursive: true, force: true });
    }
  }
  const goal = { of: "forge", atMost: 4 } as const;
  return [
    resultRow(
      { id: "P10", what: "warm start to ready, empty home", unit: "s", goal },
      { forge: seconds },
    ),
  ];
}

async function isAgentReady({ apiUrl, keys }: Stack): Promise<boolean> {
  const path = "/api/workers?status=idle";
  const { workers } = await new ApiClient(apiUrl, keys.adminKey).get<{ workers: unknown[] }>(path);
  return workers.length === 1;
}
