import { dirname, join } from "node:path";
import { ForgeError } from "../../core/errors";
import { KeyedCounter } from "../concurrency/keyed-counter";
import { SingleFlight } from "../concurrency/single-flight";
import type { Config } from "../config/config";
import type { Logger } from "../logger";
import type { Component } from "../service";
import { isStoreUnavailable, type ObjectStore } from "../store/object-store";
import { type Reading, TableEngine } from "./engine";
import type { TableFacts } from "./facts";
import { withFooter } from "./footer-file";
import type { TablePreview, TableRequest } from "./protocol";
import { Spool, type SpooledFile } from "./spool";
import type { TableFormat } from "./table-format";
import { TextCache } from "./text-cache";
import { ReadInterrupted, Unreadable } from "./unreadable";

/**
 * Maximum number of interruptions while an artifact is measured, without progress in between (see
 * Interruptions). At this number, the interrupted file counts as unreadable, because the file
 * itself may be the cause: for example, reading it may take so much memory that the kernel kills
 * the reader process. A job's files are read again every ten seconds, so the machine has an hour to
 * recover.
 *
 * The count is kept in memory only, because the file may be readable after a restart or on another
 * server. All files of an artifact share one count. With separate counts, Forge could try every bad
 * file for an hour, one file after another. After an artifact has reached the limit, its other
 * files count as unreadable at their first interruption.
 */
const MAX_INTERRUPTIONS = 360;
/**
 * Maximum number of artifacts whose interruptions are counted. Above this number, the count that
 * has not increased for the longest time is dropped.
 */
const MAX_INTERRUPTED = 1_000;
const MAX_FACTS = 10_000;
const MAX_FACTS_BYTES = 8 * 1024 * 1024;
const MAX_CACHED_PREVIEWS = 100;
const MAX_PREVIEW_CACHE_BYTES = 32 * 1024 * 1024;
const IDLE_MS = 60_000;
/**
 * Maximum number of a tenant's previews in progress: the file is being downloaded, waits for the
 * reader process, or is being read.
 */
const MAX_PREVIEWS = 8;
/**
 * The `large` engine reads CSV and JSON Lines files larger than this, so that small files need not
 * wait for them. The `small` engine reads all other files, including Parquet files of any size.
 */
const LARGE_BYTES = 64 * 1024 * 1024;
/**
 * Minimum speed of reading a large file. The time limit for measuring a file grows with its size:
 * by one millisecond per MIN_BYTES_PER_MS bytes.
 */
const MIN_BYTES_PER_MS = 10_000;
/**
 * Maximum number of milliseconds that a file's size adds to the time limit. Limited because other
 * files wait while a large file is read.
 */
const MAX_SIZE_ALLOWANCE_MS = 30 * 60_000;

/** A table in the store. */
export interface StoredTable extends SpooledFile {
  /** The tenant that owns the table. Tenants are served round-robin. */
  tenant: string;
  /** Key in the store. */
  key: string;
  format: TableFormat;
  /**
   * `folder` is the artifact's folder. `place` is the file's position in the order in which the
   * artifact's files are measured, from 0. Default: the file is the artifact's only file.
   */
  part?: { folder: string; place: number };
}

/**
 * Counts the interruptions of an artifact's measurement since its last progress. Progress means
 * that a file with a higher `place` than `measuredTo` was measured.
 */
interface Interruptions {
  /** Progress resets the count to 0, unless the count has reached the limit. */
  times: number;
  /**
   * The highest `place` of the files that were measured. If the cache drops the facts of a file up
   * to this place, the file is measured again. That is not progress.
   */
  measuredTo: number;
}

export interface PreviewedTable extends StoredTable {
  storageId: string;
  path: string;
}

/**
 * Measures and previews users' and workers' tables. Their bytes are read only in separate processes
 * with limited time and memory.
 */
export class Tables implements Component {
  readonly name = "tables";
  private readonly cache = new TextCache(MAX_CACHED_PREVIEWS, MAX_PREVIEW_CACHE_BYTES);
  /**
   * The row count and columns of each measured file. After an interruption, the files in this cache
   * are not read again.
   */
  private readonly facts = new TextCache(MAX_FACTS, MAX_FACTS_BYTES);
  /** Counts interrupted measurements. The key is the artifact's folder. */
  private readonly interruptions = new Map<string, Interruptions>();
  /** Reads a file only once for concurrent previews of the file. */
  private readonly inFlight = new SingleFlight<string>();
  /** The number of previews that are being made, by tenant. */
  private readonly previews = new KeyedCounter();
  private readonly spool: Spool;
  private readonly directory: string;
  private readonly timeoutMs: number;
  private readonly engines: { small: TableEngine; large: TableEngine };

  /** @param forTests replaces the program of the reader processes, and MAX_INTERRUPTIONS. */
  constructor(
    private readonly store: ObjectStore,
    { home, tables }: Pick<Config, "home" | "tables">,
    private readonly logger: Logger,
    private readonly forTests: { program?: string; maxInterruptions?: number } = {},
  ) {
    this.directory = join(home, "cache/tables");
    this.spool = new Spool(this.directory, tables.cacheBytes);
    this.timeoutMs = tables.timeoutMs;
    const engine = () => new TableEngine({ idleMs: IDLE_MS, program: forTests.program }, logger);
    this.engines = { small: engine(), large: engine() };
  }

  start(): void {
    // Each engine starts its process when it reads its first file.
  }

  async stop(): Promise<void> {
    await Promise.all([this.engines.small.stop(), this.engines.large.stop()]);
  }

  /**
   * Counts a table's rows and names its columns.
   *
   * @param onRead called after each try with the time that a process spent on it, in milliseconds.
   * @throws Unreadable if a later try can't succeed.
   * @throws ReadInterrupted or the store's error if a later try may succeed.
   * @throws Unavailable when the server stops, or if the disk has no room for the file.
   */
  async measure(
    table: StoredTable,
    signal?: AbortSignal,
    onRead?: (ms: number) => void,
  ): Promise<TableFacts> {
    const key = JSON.stringify([table.key, table.size_bytes, table.sha256, table.format]);
    const known = this.facts.get(key);
    if (known !== undefined) return JSON.parse(known);
    try {
      const facts = await this.measureNow(table, signal, onRead);
      this.facts.set(key, facts);
      this.noteProgress(table);
      return JSON.parse(facts);
    } catch (error) {
      throw error instanceof ReadInterrupted ? this.countInterruption(table, error) : error;
    }
  }

  private get maxInterruptions(): number {
    return this.forTests.maxInterruptions ?? MAX_INTERRUPTIONS;
  }

  private noteProgress(table: StoredTable): void {
    const { folder, place } = partOf(table);
    const known = this.interruptions.get(folder);
    if (!known || known.times >= this.maxInterruptions || place <= known.measuredTo) return;
    this.interruptions.set(folder, { times: 0, measuredTo: place });
  }

  /** Counts an interruption. Returns `error`, or Unreadable if the count has reached the limit. */
  private countInterruption(table: StoredTable, error: ReadInterrupted): Error {
    const { key } = table;
    const { folder, place } = partOf(table);
    const known = this.interruptions.get(folder) ?? { times: 0, measuredTo: place - 1 };
    const times = known.times + 1;
    this.interruptions.delete(folder);
    this.interruptions.set(folder, { ...known, times });
    const [oldest = ""] = this.interruptions.keys();
    if (this.interruptions.size > MAX_INTERRUPTED) this.interruptions.delete(oldest);
    const fields = { file: key, times, err: error.message };
    this.logger.warn(fields, "reading a table was interrupted");
    if (times < this.maxInterruptions) return error;
    this.logger.error(fields, "a table is given up as unreadable");
    return new Unreadable(`reading the artifact's files was interrupted ${times} times`);
  }

  private async measureNow(
    table: StoredTable,
    signal: AbortSignal | undefined,
    onRead: Reading["onRead"],
  ): Promise<string> {
    // Only the footer of a parquet file is read, so its size does not extend the time limit.
    const bytes = table.format === "parquet" ? 0 : table.size_bytes;
    const timeoutMs =
      this.timeoutMs + Math.min(Math.ceil(bytes / MIN_BYTES_PER_MS), MAX_SIZE_ALLOWANCE_MS);
    const read = (path: string) => this.read("measure", path, table, { timeoutMs, signal, onRead });
    return await this.withFile(table, read, "footer");
  }

  /**
   * Previews are cached, because an artifact never changes.
   *
   * @throws the errors of `measure`.
   * @throws ForgeError 422 `preview_too_large`; 429 if the tenant has MAX_PREVIEWS in progress.
   */
  async preview(table: PreviewedTable): Promise<TablePreview> {
    const key = JSON.stringify([table.storageId, table.path, table.sha256]);
    const read = async (): Promise<string> => {
      const preview = await this.readPreview(table);
      this.cache.set(key, preview);
      return preview;
    };
    return JSON.parse(this.cache.get(key) ?? (await this.inFlight.do(key, read)));
  }

  private async readPreview(table: PreviewedTable): Promise<string> {
    const { tenant } = table;
    if (this.previews.of(tenant) >= MAX_PREVIEWS) {
      const message = `at most ${MAX_PREVIEWS} previews of a tenant are made at once; try again shortly`;
      throw new ForgeError(429, "rate_limited", message);
    }
    if (this.store.localPath === undefined && !this.spool.keeps(table)) {
      const message = `the file is larger than ${this.spool.maxBytes} bytes, the limit for previews`;
      throw new ForgeError(422, "preview_too_large", message);
    }
    this.previews.add(tenant);
    try {
      return await this.withFile(table, (path) =>
        this.read("preview", path, table, { timeoutMs: this.timeoutMs }),
      );
    } finally {
      this.previews.remove(tenant);
    }
  }

  /**
   * Runs `read` with a local copy of the file.
   * @param needs whether `read` uses all of a parquet file, or only the footer.
   */
  private async withFile(
    table: StoredTable,
    read: (path: string) => Promise<string>,
    needs: "all" | "footer" = "all",
  ): Promise<string> {
    const path = this.localPath(table.key);
    if (path !== undefined) return await read(path);
    if (needs === "footer" && table.format === "parquet") {
      return await withFooter(this.store, table, this.directory, read);
    }
    return await this.spool.use(table, () => this.store.read(table.key), read);
  }

  private read(
    work: TableRequest["work"],
    path: string,
    table: StoredTable,
    { timeoutMs, signal, onRead }: Pick<Reading, "timeoutMs" | "signal" | "onRead">,
  ): Promise<string> {
    const { tenant, format } = table;
    return this.engineOf(table).read({ work, path, format, tenant, timeoutMs, signal, onRead });
  }

  private engineOf({ size_bytes, format }: StoredTable): TableEngine {
    const isLarge = size_bytes > LARGE_BYTES && format !== "parquet";
    return isLarge ? this.engines.large : this.engines.small;
  }

  /** Returns a stored file's path on the local disk, or undefined if the store is remote. */
  private localPath(key: string): string | undefined {
    try {
      return this.store.localPath?.(key);
    } catch (error) {
      if (isStoreUnavailable(error)) throw error;
      if (Object.hasOwn(Object(error), "code")) {
        throw new ReadInterrupted("the file is not in the store now");
      }
      throw new Unreadable("the stored file leads out of the store");
    }
  }
}

const partOf = ({ key, part }: StoredTable) => part ?? { folder: dirname(key), place: 0 };
