import { join } from "node:path";
import { ForgeError } from "../../core/errors";
import { Shared } from "../concurrency/shared";
import type { Config } from "../config/config";
import type { Logger } from "../logger";
import type { Component } from "../service";
import type { ObjectStore } from "../store/object-store";
import { Answers } from "./answers";
import { TableEngine } from "./engine";
import type { TableFacts } from "./facts";
import { withFooter } from "./footer-file";
import type { TablePreview, TableRequest } from "./protocol";
import { Spool, type SpooledFile } from "./spool";
import type { TableFormat } from "./table-format";
import { Unreadable } from "./unreadable";

const MAX_ANSWERS = 100;
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
const IDLE_MS = 60_000;
const MAX_WAITING_PREVIEWS = 8;
/** What is larger is read by a process of its own, so that it doesn't hold up all that are not. */
const LARGE_BYTES = 64 * 1024 * 1024;
/** The slowest that a large file is read; below that it hangs. */
const MIN_BYTES_PER_MS = 10_000;
/** However large it is: others wait for it. */
const MAX_MORE_MS = 30 * 60_000;

/** A table in the store. */
export interface StoredTable extends SpooledFile {
  /** Whose it is: tenants take turns. */
  tenant: string;
  /** In the store. */
  key: string;
  format: TableFormat;
}

export interface PreviewedTable extends StoredTable {
  storageId: string;
  path: string;
}

/**
 * What users' and workers' tables hold. Their bytes are read in processes apart from the server, within
 * bounds of time and memory, and nowhere else.
 */
export class Tables implements Component {
  readonly name = "tables";
  private readonly answers = new Answers(MAX_ANSWERS, MAX_ANSWER_BYTES);
  /** One reading for all that ask meanwhile. */
  private readonly underWay = new Shared<string>();
  private readonly spool: Spool;
  private readonly directory: string;
  private readonly timeoutMs: number;
  private readonly engines: { small: TableEngine; large: TableEngine };

  /** @param program of the processes that read; a test has others. */
  constructor(
    private readonly store: ObjectStore,
    { home, tables }: Pick<Config, "home" | "tables">,
    logger: Logger,
    program?: string,
  ) {
    this.directory = join(home, "cache/tables");
    this.spool = new Spool(this.directory, tables.cacheBytes);
    this.timeoutMs = tables.timeoutMs;
    const engine = () => new TableEngine({ idleMs: IDLE_MS, program }, logger);
    this.engines = { small: engine(), large: engine() };
  }

  start(): void {
    // The processes start with the first file.
  }

  async stop(): Promise<void> {
    await Promise.all([this.engines.small.stop(), this.engines.large.stop()]);
  }

  /**
   * Counts a table's rows and names its columns, however large it is.
   *
   * @param signal takes it back, as long as it waits for its turn.
   * @throws Unreadable; 503 when the server stops.
   */
  async measure(table: StoredTable, signal?: AbortSignal): Promise<TableFacts> {
    // Of parquet only the footer is read.
    const bytes = table.format === "parquet" ? 0 : table.size_bytes;
    const timeoutMs = this.timeoutMs + Math.min(Math.ceil(bytes / MIN_BYTES_PER_MS), MAX_MORE_MS);
    const read = (path: string) => this.read("measure", path, table, timeoutMs, signal);
    return JSON.parse(await this.withFile(table, read, "footer"));
  }

  /**
   * An artifact never changes, so what was answered once stays true.
   *
   * @throws Unreadable; 422 `preview_too_large`; 429 when the tenant has too many under way; 503 when
   * the server stops.
   */
  async preview(table: PreviewedTable): Promise<TablePreview> {
    const key = JSON.stringify([table.storageId, table.path, table.sha256]);
    const known = this.answers.get(key);
    if (known !== undefined) return JSON.parse(known);
    const answer = await this.underWay.do(key, async () => {
      const made = await this.readPreview(table);
      this.answers.set(key, made);
      return made;
    });
    return JSON.parse(answer);
  }

  private async readPreview(table: PreviewedTable): Promise<string> {
    if (this.engineOf(table).waitingOf(table.tenant) >= MAX_WAITING_PREVIEWS) {
      const message = `at most ${MAX_WAITING_PREVIEWS} previews of a tenant's may wait; try again shortly`;
      throw new ForgeError(429, "rate_limited", message);
    }
    if (this.store.localPath === undefined && !this.spool.keeps(table)) {
      const message = `the file is larger than ${this.spool.maxBytes} bytes, the most that a preview may fetch`;
      throw new ForgeError(422, "preview_too_large", message);
    }
    return await this.withFile(table, (path) => this.read("preview", path, table, this.timeoutMs));
  }

  /** @param needs of parquet, all of it or its footer only. */
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
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<string> {
    const { tenant, format } = table;
    return this.engineOf(table).read({ work, path, format, tenant, timeoutMs, signal });
  }

  private engineOf({ size_bytes, format }: StoredTable): TableEngine {
    const isLarge = size_bytes > LARGE_BYTES && format !== "parquet";
    return isLarge ? this.engines.large : this.engines.small;
  }

  /** Undefined where the store keeps its objects elsewhere. */
  private localPath(key: string): string | undefined {
    try {
      return this.store.localPath?.(key);
    } catch {
      throw new Unreadable("the stored file is not where it should be");
    }
  }
}
