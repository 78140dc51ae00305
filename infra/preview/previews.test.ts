import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../config";
import { createLogger } from "../logger";
import { LocalStore } from "../store/local-store";
import type { ObjectStore } from "../store/object-store";
import { PreviewEngine } from "./engine";
import { type PreviewedFile, Previews } from "./previews";

/** Answers with what is in the file, and counts. */
const PROGRAM = `
let count = 0;
process.on("disconnect", () => process.exit());
process.on("message", ({ id, path }) => {
  const rows = [{ text: require("fs").readFileSync(path, "utf8"), count: ++count }];
  process.send({ id, rssBytes: 1, preview: JSON.stringify({ num_rows: 1, columns: [], rows, truncated: false }) });
});`;

let folder: string;
let engine: PreviewEngine;
const logger = createLogger("silent");
const { config } = loadConfig({});

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "forge-previews-"));
  const program = join(folder, "program.js");
  writeFileSync(program, PROGRAM);
  engine = new PreviewEngine({ timeoutMs: 5_000, idleMs: 5_000, program }, logger);
});

afterEach(async () => {
  await engine.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A store that is no directory, as far as one can tell. */
function elsewhere(store: LocalStore): ObjectStore {
  return new Proxy<ObjectStore>(store, {
    get: (of, name) => (name === "localPath" ? undefined : Reflect.get(of, name).bind(of)),
  });
}

function fileOf(artifactId: string, text: string): PreviewedFile {
  return {
    artifactId,
    path: "raw.csv",
    format: "csv",
    key: `${artifactId}/raw.csv`,
    size_bytes: text.length,
    sha256: createHash("sha256").update(text).digest("hex"),
  };
}

test.each([
  ["a directory", (store: LocalStore) => store],
  ["elsewhere", elsewhere],
])("a file of a store that is %s is read once, also for many at once", async (_where, as) => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const previews = new Previews(as(store), { ...config, home: folder }, logger, engine);
  for (const id of ["one", "two"]) await store.put(`${id}/raw.csv`, Buffer.from("text"));
  const asked = ["one", "one", "two"].map((id) => previews.of(fileOf(id, "text")));
  const counts = (await Promise.all(asked)).map(({ rows }) => rows[0]);
  expect(counts).toEqual([1, 1, 2].map((count) => ({ text: "text", count })));
  expect((await previews.of(fileOf("one", "text"))).rows).toEqual([{ text: "text", count: 1 }]);
});

test("what is not the store's is not read", async () => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const previews = new Previews(store, { ...config, home: folder }, logger, engine);
  await store.put("one/x", Buffer.from(""));
  symlinkSync("/etc/hostname", join(folder, "store/one/raw.csv"));
  await expect(previews.of(fileOf("one", "text"))).rejects.toMatchObject({
    code: "preview_failed",
  });
});
