import { join } from "node:path";
import type { Config } from "../config";
import type { TableFormat } from "../datasets/table-format";
import type { Logger } from "../logger";
import type { Part } from "../service";
import type { ObjectStore } from "../store/object-store";
import { Answers } from "./answers";
import { PreviewEngine } from "./engine";
import { PreviewFailed } from "./failed";
import type { TablePreview } from "./protocol";
import { Spool, type SpooledFile } from "./spool";

const MAX_ANSWERS = 100;
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
const IDLE_MS = 60_000;

/** A table of an artifact's, in the store. */
export interface PreviewedFile extends SpooledFile {
  artifactId: string;
  path: string;
  format: TableFormat;
  /** In the store. */
  key: string;
}

/** Previews of stored tables. An artifact never changes, so what was answered once stays true. */
export class Previews implements Part {
  readonly name = "previews";
  private readonly answers = new Answers(MAX_ANSWERS, MAX_ANSWER_BYTES);
  private readonly underWay = new Map<string, Promise<string>>();
  private readonly spool: Spool;

  constructor(
    private readonly store: ObjectStore,
    { home, preview }: Config,
    logger: Logger,
    private readonly engine = new PreviewEngine({ ...preview, idleMs: IDLE_MS }, logger),
  ) {
    this.spool = new Spool(join(home, "cache/preview"), preview.cacheBytes);
  }

  start(): void {
    // The process starts with the first preview.
  }

  stop(): Promise<void> {
    return this.engine.stop();
  }

  /** @throws 422 `preview_failed`, `preview_too_large`; 503 when too many are under way. */
  async of(file: PreviewedFile): Promise<TablePreview> {
    const key = JSON.stringify([file.artifactId, file.path, file.sha256]);
    return JSON.parse(this.answers.get(key) ?? (await this.readOnce(key, file))) as TablePreview;
  }

  /** One reading for all that ask meanwhile. */
  private readOnce(key: string, file: PreviewedFile): Promise<string> {
    const known = this.underWay.get(key);
    if (known) return known;
    const reading = this.read(file)
      .then((answer) => {
        this.answers.set(key, answer);
        return answer;
      })
      .finally(() => this.underWay.delete(key));
    this.underWay.set(key, reading);
    return reading;
  }

  private async read(file: PreviewedFile): Promise<string> {
    const local = this.localPath(file.key);
    if (local !== undefined) return await this.engine.read(local, file.format);
    return await this.spool.use(
      file,
      () => this.store.read(file.key),
      (path) => this.engine.read(path, file.format),
    );
  }

  /** Undefined where the store keeps its objects elsewhere. */
  private localPath(key: string): string | undefined {
    try {
      return this.store.localPath?.(key);
    } catch {
      throw new PreviewFailed("the stored file is not where it should be");
    }
  }
}
