import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import type { ObjectStore, StoredObject } from "./object-store";

/** The object store as a directory. */
export class LocalStore implements ObjectStore {
  constructor(private readonly root: string) {}

  async put(key: string, body: Buffer): Promise<void> {
    const target = this.pathOf(key);
    const temporary = join(dirname(target), `.${randomUUID()}.part`);
    try {
      const file = await createFile(temporary);
      try {
        await file.writeFile(body);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, target);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  async list(prefix: string): Promise<StoredObject[]> {
    const directory = this.pathOf(prefix);
    const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
      (error: unknown) => {
        if (isErrno(error, "ENOENT")) return [];
        throw error;
      },
    );
    const files = entries
      .filter((entry) => entry.isFile() && !entry.name.endsWith(".part"))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
    return await Promise.all(
      files.map(async (file) => ({
        path: relative(directory, file).split(sep).join("/"),
        sizeBytes: (await stat(file)).size,
        sha256: await sha256Of(file),
      })),
    );
  }

  private pathOf(key: string): string {
    const segments = key.split("/");
    if (segments.includes("..") || key.startsWith("/") || key.includes("\0")) {
      throw new Error(`not a store key: ${key}`);
    }
    return join(this.root, ...segments);
  }
}

/** Opens a new file; its directory is made only where it is missing, which is seldom. */
async function createFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, "wx");
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
    await mkdir(dirname(path), { recursive: true });
    return await open(path, "wx");
  }
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

function isErrno(error: unknown, code: string): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === code;
}
