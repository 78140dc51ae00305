import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saySilently } from "../../dev/stack/say";
import { Stack, type StackOptions } from "../../dev/stack/stack";
import { keepLogs } from "./evidence";
import { createPlace, type Server } from "./servers";

export interface TestStack {
  stack: Stack;
  /** Settings for its forge-server. */
  env: Record<string, string>;
  /** Stops the stack and removes all its data. */
  end(): Promise<void>;
}

interface TestStackOptions extends Pick<StackOptions, "split" | "env" | "nodeOptions"> {
  /**
   * Servers that the stack starts for itself. For all other servers, it uses the shared ones of
   * `npm test`, if there are any.
   */
  own: Server[];
}

/** A stack in its own folder. `start` starts the servers that the test needs. */
export async function startTestStack(
  { own, ...options }: TestStackOptions,
  start: (stack: Stack) => Promise<void>,
): Promise<TestStack> {
  const home = mkdtempSync(join(tmpdir(), "forge-test-"));
  const place = await createPlace(own);
  // Run handlers as the test's own user: slot users could not write to the test's files.
  const env = { SLOT_USERS: "false", ...place.env, ...options.env };
  const { given } = place;
  const stack = new Stack({ ...options, home, agents: 0, env, say: saySilently, given });
  const end = async (): Promise<void> => {
    await stack.stop();
    keepLogs(home);
    try {
      await place.remove();
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  };
  try {
    await start(stack);
  } catch (error) {
    await end();
    throw error;
  }
  return { stack, env, end };
}
