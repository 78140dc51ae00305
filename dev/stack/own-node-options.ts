import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "./paths";

/**
 * Returns Node's options from a program's first line (`#!/usr/bin/env -S node --option`). They
 * apply only if the program is started directly. To start it as `node program`, pass them to Node.
 */
export function ownNodeOptions(program: string): string[] {
  const [first = ""] = readFileSync(program, "utf8").split("\n", 1);
  return first.split(" ").filter((word) => word.startsWith("--"));
}

/** Node's options of forge-server, for programs that are compared with it. */
export const forgeServerOptions = (): string[] =>
  ownNodeOptions(join(checkoutRoot(), "dist/bin/forge-server.js"));
