import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, rename, rm, stat, statfs, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Unavailable } from "../../core/errors";
import { Shared } from "../concurrency/shared";
import { Unreadable } from "./unreadable";

/** What a manifest says of a file. */
export interface SpooledFile {
  size_bytes: number;
  /** In hex. */
  sha256: string;
}

/** A download that its process left behind. */
const ABANDONED_MS = 3_600_000;
/** What a copy leaves of the disk, for all else that is kept there. */
const MIN_FREE_BYTES = 1024 ** 3;
const PART = /\.part$/;

/**
 * Copies of files whose store is elsewhere, by their checksums, in a directory of so many bytes: those
 * not asked for the longest go first. Processes may share it.
 */
export class Spool {
  private readonly downloads = new Shared<string>();
  private readonly uses = new Map<string, number>();
  /** Of downloads under way. */
  private reserved = 0;

  constructor(
    private readonly directory: string,
    readonly maxBytes: number,
  ) {}

  /**
   * Works with a copy of a file, which stays for so long. One that is larger than the directory may be is
   * fetched where the disk has room, and removed afterwards.
   *
   * @throws Unavailable when the disk has no room; Unreadable when what the store has is not what the
   * manifest names.
   */
  async use<Result>(
    file: SpooledFile,
    read: () => Readable,
    work: (path: string) => Promise<Result>,
  ): Promise<Result> {
    const { sha256: name } = file;
    if (!/^[0-9a-f]{64}$/.test(name)) throw new Unreadable("the file has no SHA-256");
    this.uses.set(name, (this.uses.get(name) ?? 0) + 1);
    try {
      return await work(await this.downloads.do(name, () => this.fetch(file, read)));
    } finally {
      const others = (this.uses.get(name) ?? 1) - 1;
      if (others > 0) this.uses.set(name, others);
      else {
        this.uses.delete(name);
        if (!this.keeps(file)) await rm(join(this.directory, name), { force: true });
      }
    }
  }

  /** False for a file that is larger than all of the directory may be. */
  keeps({ size_bytes }: SpooledFile): boolean {
    return size_bytes <= this.maxBytes;
  }

  private async fetch(file: SpooledFile, read: () => Readable): Promise<string> {
    const path = join(this.directory, file.sha256);
    const now = new Date();
    const isThere = await utimes(path, now, now).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
    this.reserved += file.size_bytes;
    const part = `${path}.${randomUUID()}.part`;
    try {
      await mkdir(this.directory, { recursive: true });
      await this.makeRoom();
      await this.requireRoom(file);
      const target = createWriteStream(part, { flags: "wx", mode: 0o600 });
      // Opened any later, it could appear after it was removed: the bytes may be wrong at once.
      await once(target, "open");
      await pipeline(read(), checked(file), target);
      await rename(part, path);
      return path;
    } finally {
      this.reserved -= file.size_bytes;
      await rm(part, { force: true });
    }
  }

  /** For all downloads under way, this one among them. */
  private async requireRoom({ size_bytes }: SpooledFile): Promise<void> {
    const { bavail, bsize } = await statfs(this.directory);
    if (bavail * bsize >= this.reserved + MIN_FREE_BYTES) return;
    throw new Unavailable(
      `the server's disk has no room to read a file of ${size_bytes} bytes now`,
    );
  }

  /** For the downloads under way. */
  private async makeRoom(): Promise<void> {
    const found = await Promise.all(
      (await readdir(this.directory)).map(async (name) => {
        const path = join(this.directory, name);
        const facts = await stat(path).catch(() => undefined);
        return { name, path, size: facts?.size ?? 0, usedAt: facts?.mtimeMs ?? 0 };
      }),
    );
    const files: typeof found = [];
    for (const file of found) {
      if (!PART.test(file.name)) files.push(file);
      else if (file.usedAt < Date.now() - ABANDONED_MS) await rm(file.path, { force: true });
    }
    let bytes = this.reserved + files.reduce((sum, { size }) => sum + size, 0);
    for (const { name, path, size } of files.sort((a, b) => a.usedAt - b.usedAt)) {
      if (bytes <= this.maxBytes) return;
      if (this.uses.has(name)) continue;
      await rm(path, { force: true });
      bytes -= size;
    }
  }
}

/** Passes the bytes on; throws once they are not those of the manifest. */
function checked({ size_bytes, sha256 }: SpooledFile) {
  return async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const hash = createHash("sha256");
    let size = 0;
    for await (const chunk of chunks) {
      size += chunk.length;
      if (size > size_bytes) throw changed();
      hash.update(chunk);
      yield chunk;
    }
    if (size !== size_bytes || hash.digest("hex") !== sha256) throw changed();
  };
}

const changed = (): Unreadable =>
  new Unreadable("the stored file is not the one that the manifest names");
