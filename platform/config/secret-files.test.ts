import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeVariables, loadConfig } from "./config";
import { SECRET_VARIABLES } from "./secret-files";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "forge-secrets-"));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function secretFile(content: string): string {
  const path = join(folder, "secret");
  writeFileSync(path, content);
  return path;
}

test("a secret is read from the file that its _FILE variable names, without the last line break", () => {
  const url = "postgres://forge:pass@db/forge";
  const loaded = loadConfig({ FORGE_DATABASE_URL_FILE: secretFile(`${url}\n`) });
  expect(loaded.config.database.url).toBe(url);
  expect(loaded.unknown).toEqual([]);
  const key = loadConfig({ TEMPORAL_API_KEY_FILE: secretFile("key-1\r\n") });
  expect(key.config.temporal.connection).toMatchObject({ apiKey: "key-1", tls: {} });
});

test("errors name variables set twice, unreadable files and empty files, but show no value", () => {
  const load = (env: NodeJS.ProcessEnv) => () => loadConfig(env);
  const both = { SPACES_SECRET: "word-1", SPACES_SECRET_FILE: secretFile("word-2") };
  expect(load(both)).toThrow("SPACES_SECRET and SPACES_SECRET_FILE are both set");
  expect(load(both)).not.toThrow(/word-/);
  expect(load({ TEMPORAL_API_KEY_FILE: "/no/such" })).toThrow(
    "TEMPORAL_API_KEY_FILE: cannot read /no/such (ENOENT)",
  );
  expect(load({ TEMPORAL_API_KEY_FILE: folder })).toThrow(`cannot read ${folder} (EISDIR)`);
  expect(load({ TEMPORAL_API_KEY_FILE: secretFile("\n") })).toThrow("is empty");
});

test("a bad value from a file is not shown", () => {
  const load = () => loadConfig({ FORGE_BOOTSTRAP_ENV_FILE: secretFile("word-3") });
  expect(load).toThrow("FORGE_BOOTSTRAP_ENV");
  expect(load).not.toThrow(/word-3/);
});

test("forge-server config lists the file of each secret", () => {
  const lines = describeVariables();
  for (const name of SECRET_VARIABLES) {
    expect(lines.find((line) => line.startsWith(`${name} `))).toContain(`${name}_FILE`);
  }
});
