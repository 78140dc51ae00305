import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "./paths";

/**
 * Node's options in the first line of a program (`#!/usr/bin/env -S node --option`). They apply only
 * to a program that is started by its name. If you start it as `node program`, pass them to Node.
 */
export function ownNodeOptions(program: string): string[] {
  const [first = ""] = readFileSync(program, "utf8").split("\n", 1);
  return first.split(" ").filter((word) => word.startsWith("--"));
}

/** Node's options of forge-server, for programs that are compared with it. */
export const forgeServerOptions = (): string[] =>
  ownNodeOptions(join(checkoutRoot(), "dist/bin/forge-server.js"));
