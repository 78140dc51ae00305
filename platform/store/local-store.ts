import { createHash, randomUUID } from "node:crypto";
import { constants, createReadStream, existsSync, realpathSync } from "node:fs";
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  statfs,
} from "node:fs/promises";
import { dirname, join, normalize, relative, sep } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  type ByteRange,
  byPath,
  type ObjectStore,
  requireKey,
  type SizeAndChecksum,
  type StoredObject,
  StoreUnavailable,
} from "./object-store";

const MARK = ".forge-store";

/** The object store as a directory. Links that lead out of the directory are refused. */
export class LocalStore implements ObjectStore {
  constructor(private readonly root: string) {}

  /**
   * Does not sync the file's folder, so the file may be gone after a power loss. Use `put` only for
   * files that Forge can write again.
   */
  async put(key: string, body: Buffer): Promise<void> {
    await this.write(key, (file) => file.writeFile(body));
  }

  async putStream(key: string, body: AsyncIterable<Buffer>): Promise<SizeAndChecksum> {
    const hash = createHash("sha256");
    let sizeBytes = 0;
    await this.write(key, async (file) => {
      for await (const chunk of body) {
        hash.update(chunk);
        sizeBytes += chunk.length;
        await writeWhole(file, chunk);
      }
    });
    await this.syncFolders(this.pathOf(key));
    return { sizeBytes, sha256: hash.digest("hex") };
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.root);
    return bavail * bsize;
  }

  async append(key: string, offset: number, body: AsyncIterable<Buffer>): Promise<void> {
    const file = await openIn(this.pathOf(key), APPEND);
    try {
      let position = offset;
      for await (const chunk of body) {
        await writeWhole(file, chunk, position);
        position += chunk.length;
      }
    } finally {
      await file.close();
    }
  }

  async move(from: string, to: string): Promise<boolean> {
    const source = this.pathOf(from);
    const target = this.pathOf(to);
    try {
      const file = await open(source, "r+");
      try {
        await file.sync();
      } finally {
        await file.close();
      }
      await mkdir(dirname(target), { recursive: true });
      await rename(source, target);
      await this.syncFolders(target);
      return true;
    } catch (error) {
      if (MOVE_CONFLICT_CODES.some((code) => isErrno(error, code))) return false;
      throw error;
    }
  }

  async measure(key: string): Promise<SizeAndChecksum | undefined> {
    const sizeBytes = await this.sizeOf(key);
    if (sizeBytes === undefined) return undefined;
    try {
      return { sizeBytes, sha256: await sha256Of(this.pathOf(key)) };
    } catch (error) {
      if (isErrno(error, "ENOENT")) return undefined; // moved in the meantime
      throw error;
    }
  }

  async sizeOf(key: string): Promise<number | undefined> {
    const path = this.uncheckedPathOf(key);
    try {
      const found = await stat(path);
      // A link to a file outside of the store is not an object.
      return found.isFile() && this.isInside(path) ? found.size : undefined;
    } catch (error) {
      if (NOT_FOUND.some((code) => isErrno(error, code))) return undefined;
      throw error;
    }
  }

  read(key: string, range?: ByteRange): Readable {
    return createReadStream(this.pathOf(key), range);
  }

  localPath(key: string): string {
    return realpathSync(this.pathOf(key));
  }

  async remove(key: string): Promise<void> {
    const path = this.pathOf(key);
    await rm(path, { force: true });
    // Remove the folder too if it is empty. If it is not, rmdir fails and changes nothing.
    if (dirname(key) !== ".") await rmdir(dirname(path)).catch(() => undefined);
  }

  async removeAll(prefix: string): Promise<void> {
    await rm(this.pathOf(prefix), { recursive: true, force: true });
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
      .filter((entry) => entry.isFile() && !UNFINISHED.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name));
    const found = await Promise.all(
      files.map(async (file) => ({
        path: relative(directory, file).split(sep).join("/"),
        sizeBytes: (await stat(file)).size,
      })),
    );
    return found.sort(byPath);
  }

  /**
   * Creates the directory if it is missing, and a mark file in it. Other methods refuse a directory
   * without the mark: it may be a mount point whose disk is not mounted.
   */
  async check(): Promise<void> {
    await mkdir(this.root, { recursive: true });
    await (await open(join(this.root, MARK), "a")).close();
  }

  /** Writes a file that becomes visible only when it is complete and synced to disk. */
  private async write(key: string, fill: (file: FileHandle) => Promise<void>): Promise<void> {
    const target = this.pathOf(key);
    const temporary = join(dirname(target), `.${randomUUID()}.part`);
    try {
      const file = await openIn(temporary, "wx");
      try {
        await fill(file);
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

  /**
   * Syncs all folders from the file's folder up to the root of the store. After this, the names of
   * the file and of its folders survive a power loss.
   */
  private async syncFolders(path: string): Promise<void> {
    const root = normalize(this.root);
    for (let folder = dirname(path); folder.startsWith(root); folder = dirname(folder)) {
      try {
        const handle = await open(folder, "r");
        await handle.sync().finally(() => handle.close());
      } catch (error) {
        // The file was removed meanwhile, or this network file system can't sync folders.
        if (!["ENOENT", "EINVAL"].some((code) => isErrno(error, code))) throw error;
      }
    }
  }

  private pathOf(key: string): string {
    const path = this.uncheckedPathOf(key);
    if (!this.isInside(path)) throw new Error(`not a store key: ${key} leads out of the store`);
    return path;
  }

  /** Does not check links. @throws StoreUnavailable if the store's directory is missing. */
  private uncheckedPathOf(key: string): string {
    const path = join(this.root, ...requireKey(key).split("/"));
    if (!existsSync(join(this.root, MARK)))
      throw new StoreUnavailable("the store's directory is not there");
    return path;
  }

  private isInside(path: string): boolean {
    const real = realPathOf(path);
    const root = realPathOf(this.root) ?? this.root;
    return real === undefined || `${real}${sep}`.startsWith(`${root}${sep}`);
  }
}

/** Resolves links in the existing part of a path; undefined if it can't be read. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch (error) {
    const parent = dirname(path);
    if (!NOT_FOUND.some((code) => isErrno(error, code)) || parent === path) return undefined;
    return realPathOf(parent);
  }
}

/** Error codes that mean that there is no file at a path. */
const NOT_FOUND = ["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP"];

/** Error codes of a move whose source is gone, or whose target conflicts with a file or folder. */
const MOVE_CONFLICT_CODES = ["ENOENT", "EEXIST", "ENOTDIR", "EISDIR", "ENOTEMPTY"];

/** Names of unfinished files, as `write` chooses them. */
const UNFINISHED = /^\.[0-9a-f-]{36}\.part$/;

/** Flags for writing at any offset: a missing file is created, a file is never truncated. */
const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW;

/** Opens a file. Creates its directory only on ENOENT, because the directory usually exists. */
async function openIn(path: string, flags: string | number): Promise<FileHandle> {
  try {
    return await open(path, flags);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
    await mkdir(dirname(path), { recursive: true });
    return await open(path, flags);
  }
}

/**
 * Writes all bytes. If the disk or a quota is nearly full, one call of `file.write` may write only
 * some of the bytes, without an error.
 *
 * @param position the offset of the first byte. Default: the end of the last write.
 */
async function writeWhole(file: FileHandle, bytes: Buffer, position?: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const to = position === undefined ? null : position + at;
    at += (await file.write(bytes, at, bytes.length - at, to)).bytesWritten;
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
