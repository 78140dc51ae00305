import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pythonEnvironment } from "../../stack/python";
import { saySilently } from "../../stack/say";
import { Stack } from "../../stack/stack";
import { type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import type { Stage } from "./stage";

/**
 * P10: time to start a stack with one agent. All dependencies are installed before the start, but
 * the home directory is empty.
 */
export async function measureStart(_stage: Stage, { starts }: Scale): Promise<Row[]> {
  await pythonEnvironment(saySilently, ["runtime"]);
  const seconds: number[] = [];
  while (seconds.length < starts) {
    const home = mkdtempSync(join(tmpdir(), "forge-bench-start-"));
    const began = performance.now();
    const stack = new Stack({ home, agents: 1, say: saySilently });
    try {
      await stack.start();
      seconds.push((performance.now() - began) / 1000);
    } finally {
      await stack.stop();
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
