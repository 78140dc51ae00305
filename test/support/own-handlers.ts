import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Forge } from "./forge";

/**
 * Writes handler programs, by job type, and an agent configuration that runs them. @returns the
 * configuration's path.
 */
export function writeHandlers(
  forge: Forge,
  name: string,
  handlers: Partial<Record<string, string>>,
): string {
  const folder = join(forge.stack.storeDir, "..", `handlers-${name}`);
  mkdirSync(folder, { recursive: true });
  const tables = Object.entries(handlers).map(([type, program = ""]) => {
    const isPython = /^(import|from) /m.test(program);
    const file = isPython ? `${type}.py` : `${type}.sh`;
    writeFileSync(join(folder, file), program);
    return `[handlers.${type}]\ncommand = "${isPython ? "python3" : "sh"} ${file}"\n`;
  });
  const config = join(folder, "agent.toml");
  writeFileSync(config, tables.join("\n"));
  return config;
}
