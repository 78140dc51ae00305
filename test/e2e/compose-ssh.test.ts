/** Tests whether a server with the settings of docker-compose.yml sets up machines over SSH. */

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { type Forge, startForge } from "../support/forge";
import { Sshd } from "../support/sshd";

let forge: Forge | undefined;

afterEach(async () => {
  await forge?.stop();
  forge = undefined;
});

/** The variables of Forge's container, except those for its own address and its database. */
function composeVariables(given: Record<string, string>): Record<string, string> {
  const file = readFileSync(join(checkoutRoot(), "docker-compose.yml"), "utf8");
  const service = /^ {2}forge:\n([\s\S]*?)^\S/m.exec(file)?.[1] ?? "";
  const variables = [...service.matchAll(/^ {6}(FORGE_\w+): (.*)$/gm)]
    .map(([, name = "", value = ""]) => [name, value] as const)
    .filter(([name]) => !/^FORGE_(HOST|HOME|\w+_FILE)$/.test(name))
    .map(([name, value]) => [
      name,
      value.replace(/\$\{(\w+):-([^}]*)\}/g, (_, from, otherwise) => given[from] || otherwise),
    ]);
  // If docker-compose.yml does not set FORGE_PUBLIC_URL, the variable must be empty, not missing.
  // If it were missing, the test's stack would set an address.
  return { FORGE_PUBLIC_URL: "", ...Object.fromEntries(variables) };
}

const register = async ({ user }: Forge, more: object = {}): Promise<unknown> =>
  await user.call("POST", "/api/workers/register", {
    ssh_host: "203.0.113.7",
    ssh_user: "root",
    gpu_count: 0,
    gpu_type: "cpu",
    ...more,
  });

const setsUpMachines = async ({ user }: Forge): Promise<boolean> =>
  (await user.get<{ features: { ssh_workers: boolean } }>("/api/auth/ping")).features.ssh_workers;

test("by default it does not, and the error names the missing setting", async () => {
  forge = await startForge(composeVariables({}));
  expect(await register(forge)).toMatchObject({
    status: 409,
    body: {
      error: {
        code: "bootstrap_not_configured",
        message: expect.stringContaining("FORGE_PUBLIC_URL"),
      },
    },
  });
  expect(await setsUpMachines(forge)).toBe(false);
});

test("with a public address it does, from its own files, with the keys in its data directory", async () => {
  const url = "https://forge.example.org";
  forge = await startForge(composeVariables({ FORGE_PUBLIC_URL: url }));
  expect(await setsUpMachines(forge)).toBe(true);
  expect(await register(forge)).toMatchObject({
    status: 400,
    body: { error: { param: "ssh_key_path", message: expect.stringContaining("no key file") } },
  });
  const keys = join(forge.stack.storeDir, "..", "ssh", "local");
  mkdirSync(keys, { recursive: true });
  Sshd.makeKey(join(keys, "id_ed25519"));
  expect(await register(forge, { plan: true })).toMatchObject({
    status: 200,
    body: {
      files: {
        settings: expect.stringContaining('REPOSITORY=""'),
        environment: expect.stringContaining(`SERVICE_API_URL="${url}"`),
      },
    },
  });
});

test("docker-compose.yml and docs/operating.md say that it needs the public address", () => {
  for (const file of ["docker-compose.yml", join("docs", "operating.md")]) {
    const text = readFileSync(join(checkoutRoot(), file), "utf8");
    expect(text).toMatch(/Without (it|`?FORGE_PUBLIC_URL`?), Forge can't set up machines over SSH/);
  }
});
