import { execFileSync } from "node:child_process";
import type { Context } from "../../context";
import { filesFor } from "./machine-session";

const VALUES = ["it's", 'a "b" c', "\\", "ends with \\", "$HOME $(id) `id`", "a\\nb", "ü  ", "#;="];

/** The part of a Context that `filesFor` uses. */
const ctx = {
  config: {
    http: { publicUrl: "http://forge.example.org" },
    bootstrap: {
      repository: "https://git.example.org/forge",
      repositoryRef: "main",
      environment: Object.fromEntries(VALUES.map((value, n) => [`VALUE_${n}`, value])),
    },
  },
} as unknown as Context;

const worker = { worker_id: "w", gpu_count: 1, tags: ["eu"] };

test("a shell reads every value unchanged", () => {
  const { environment = "" } = filesFor(ctx, worker);
  const names = VALUES.map((_, n) => `"$VALUE_${n}"`).join(" ");
  const shown = execFileSync("sh", ["-c", `${environment}printf '%s\\0' ${names}`]).toString();
  expect(shown.split("\0").slice(0, -1)).toEqual(VALUES);
});

test("values are in double quotes and escape only what systemd requires", () => {
  const { environment = "" } = filesFor(ctx, worker);
  for (const line of environment.trimEnd().split("\n")) {
    expect(line).toMatch(/^[A-Z][A-Z0-9_]*="([^"\\$`]|\\["\\$`])*"$/);
  }
});
