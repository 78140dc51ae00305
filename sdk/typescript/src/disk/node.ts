import { randomBytes } from "node:crypto";
import { openAsBlob } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ForgeError } from "../errors.ts";
import { requireDistinct } from "../paths.ts";
import { Counter } from "../progress.ts";
import { filesOf, intact, MANIFEST_FILE, type ManifestFile, verify } from "../verification.ts";
import type { Disk, Pulled } from "./disk.ts";
import { checkLocal, filesBelow, find, prepare } from "./folder.ts";

export const disk: Disk = {
  async open(path) {
    // If the file is missing, the error of `stat` contains the file's path. The error of
    // `openAsBlob` does not.
    if (!(await stat(path)).isFile()) throw new ForgeError(`${path} is not a file`);
    return { blob: await openAsBlob(path), filename: basename(path) };
  },

  async save(target, chunks) {
    // A random name, so that concurrent writers don't write to the same file.
    const partial = join(dirname(target), `.forge-${randomBytes(8).toString("hex")}.part`);
    try {
      const output = await open(partial, "wx");
      try {
        for await (const chunk of chunks) await output.writeFile(chunk);
      } finally {
        await output.close();
      }
      await rename(partial, target);
    } finally {
      await rm(partial, { force: true });
    }
  },

  async pull(manifest, content, directory, onProgress) {
    const files = filesOf(manifest);
    requireDistinct([MANIFEST_FILE, ...files.map(({ path }) => path)]);
    await mkdir(directory, { recursive: true });
    const verified = (manifest as { verified?: unknown }).verified === true;
    const pulled: Pulled = { directory, fetched: [], kept: [], verified };
    const total = files.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
    const counter = new Counter(total, onProgress);
    for (const file of files) {
      if ((await checkLocal(directory, file)).outcome === "ok") {
        pulled.kept.push(file.path);
        counter.advance(file.path, file.size_bytes);
        continue;
      }
      const target = await prepare(directory, file.path);
      await disk.save(target, counter.count(file.path, intact(file, content(file.path))));
      pulled.fetched.push(file.path);
    }
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    await disk.save(await prepare(directory, MANIFEST_FILE), new Blob([text]).stream());
    return pulled;
  },

  async verify(artifactId, manifest, directory, onCheck) {
    const isFolder = await stat(directory).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isFolder) throw new ForgeError(`${directory} is not a directory`);
    const known = new Set([...filesOf(manifest).map(({ path }) => path), MANIFEST_FILE]);
    const checks = {
      file: (file: ManifestFile) => checkLocal(directory, file),
      storedManifest: async () => {
        const place = await find(directory, MANIFEST_FILE);
        return place && (await readFile(place, "utf8"));
      },
      extra: async () => (await filesBelow(directory)).filter((path) => !known.has(path)).sort(),
    };
    return await verify(artifactId, manifest, checks, onCheck);
  },
};
