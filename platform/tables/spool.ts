import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createWriteStream, renameSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat, statfs, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Unavailable } from "../../core/errors";
import { KeyedCounter } from "../concurrency/keyed-counter";
import { SingleFlight } from "../concurrency/single-flight";
import { Unreadable } from "./unreadable";

/** Size and checksum of a file, from its manifest. */
export interface SpooledFile {
  size_bytes: number;
  /** In hex. */
  sha256: string;
}

/** An unfinished download that is older than this was abandoned by its process. */
const ABANDONED_MS = 3_600_000;
/** Free disk space that downloads must leave. */
const MIN_FREE_BYTES = 1024 ** 3;
const PART = /\.part$/;

const partOf = (path: string): string => `${path}.${randomUUID()}.part`;

/**
 * A local cache of files in a remote store, named by checksum, in a directory of limited size.
 * Removes the least recently used files first. Several processes may share the directory.
 */
export class Spool {
  private readonly downloads = new SingleFlight<string>();
  private readonly uses = new KeyedCounter();
  /** Bytes of running downloads. */
  private reserved = 0;

  constructor(
    private readonly directory: string,
    readonly maxBytes: number,
  ) {}

  /**
   * Runs `work` with a local copy of a file. This process keeps the copy until `work` ends. A file
   * that is larger than the limit is fetched if the disk has room, and removed afterwards.
   *
   * @throws Unavailable if the disk has no room; Unreadable if the stored file does not match the
   *   manifest.
   */
  async use<Result>(
    file: SpooledFile,
    read: () => Readable,
    work: (path: string) => Promise<Result>,
  ): Promise<Result> {
    const { sha256: name } = file;
    if (!/^[0-9a-f]{64}$/.test(name)) throw new Unreadable("the file has no SHA-256");
    this.uses.add(name);
    try {
      return await work(await this.downloads.do(name, () => this.fetch(file, read)));
    } finally {
      this.uses.remove(name);
      const isUnused = this.uses.of(name) === 0;
      if (isUnused && !this.keeps(file)) await this.remove(join(this.directory, name));
    }
  }

  /** Renames the file first, so that no process opens it while it is being removed. */
  private async remove(path: string): Promise<void> {
    const hidden = partOf(path);
    try {
      renameSync(path, hidden);
    } catch {
      return; // never downloaded, or removed by another process
    }
    await rm(hidden, { force: true });
  }

  /** Whether a file stays after its use. False for a file larger than the directory's limit. */
  keeps({ size_bytes }: SpooledFile): boolean {
    return size_bytes <= this.maxBytes;
  }

  private async fetch(file: SpooledFile, read: () => Readable): Promise<string> {
    const path = join(this.directory, file.sha256);
    // Check the size: an older release did not sync its files, so a cached file may be incomplete
    // after a crash of the machine.
    const cached = await stat(path).catch(() => undefined);
    if (cached?.size === file.size_bytes) {
      const now = new Date();
      await utimes(path, now, now).catch(() => undefined);
      return path;
    }
    this.reserved += file.size_bytes;
    const part = partOf(path);
    try {
      await mkdir(this.directory, { recursive: true });
      await this.makeRoom();
      await this.requireRoom(file);
      const target = createWriteStream(part, { flags: "wx", mode: 0o600, flush: true });
      // Wait for the file to be created. Otherwise, after an early error, `rm` below could run
      // before the file exists, and the file would stay.
      await once(target, "open");
      await pipeline(read(), checked(file), target);
      await rename(part, path);
      return path;
    } finally {
      this.reserved -= file.size_bytes;
      await rm(part, { force: true });
    }
  }

  /** Checks the free space for all running downloads, including this one. */
  private async requireRoom({ size_bytes }: SpooledFile): Promise<void> {
    const { bavail, bsize } = await statfs(this.directory);
    if (bavail * bsize >= this.reserved + MIN_FREE_BYTES) return;
    throw new Unavailable(
      `the server's disk has no room to read a file of ${size_bytes} bytes now`,
    );
  }

  /**
   * Removes files that this process does not use, the least recently used first, until the
   * remaining files and the running downloads fit into the limit. Another process may still use a
   * removed file.
   */
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
      if (this.uses.of(name) > 0) continue;
      await this.remove(path);
      bytes -= size;
    }
  }
}

/** Passes bytes through. Throws if size or checksum do not match the manifest. */
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

const changed = (): Unreadable => new Unreadable("the stored file does not match the manifest");
