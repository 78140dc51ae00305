import { disk } from "#disk";
import type { Pulled } from "../disk/disk.ts";
import { download } from "../download.ts";
import { ForgeAPIError, ForgeError } from "../errors.ts";
import { textOf } from "../exchange.ts";
import type { Listing, ListOptions } from "../listing.ts";
import type { Moment, OfUser, RequestOptions } from "../options.ts";
import { segmentsOf } from "../paths.ts";
import { Counter, type OnProgress } from "../progress.ts";
import { get, path, post, put, remove, SLOW_ANSWER_MS } from "../request.ts";
import type {
  Artifact,
  DownloadTicket,
  Lineage,
  Manifest,
  RetentionRules,
  StorageUsage,
  TablePreview,
} from "../schema.ts";
import {
  checkContent,
  type FileCheck,
  filesOf,
  intact,
  MANIFEST_FILE,
  type ManifestFile,
  type OnCheck,
  type Verification,
  verify,
} from "../verification.ts";
import { Resource } from "./resource.ts";

export interface ArtifactFilters extends ListOptions, OfUser {
  type?: Artifact["artifact_type"] | undefined;
  kind?: string | readonly string[] | undefined;
  job_id?: string | undefined;
  source?: string | undefined;
  name?: string | undefined;
  /** The beginning of an id, or a part of a name. */
  q?: string | undefined;
  created_after?: Moment | undefined;
  created_before?: Moment | undefined;
  deleted?: boolean | undefined;
}

export interface TransferOptions extends RequestOptions {
  onProgress?: OnProgress | undefined;
}

export interface CheckOptions extends RequestOptions {
  /** Called after each file is checked. */
  onCheck?: OnCheck | undefined;
}

/** `client.artifacts`. Methods that take a local path work in Node only. */
export class Artifacts extends Resource {
  /** Lists artifacts, newest first. `limit`: maximum number in total. */
  list(filters: ArtifactFilters = {}, options?: RequestOptions): Listing<Artifact> {
    return this.listing({ path: "/api/artifacts", name: "artifacts", query: filters, options });
  }

  /** Reads an artifact with its manifest. */
  async get(artifactId: string, options?: RequestOptions): Promise<Artifact> {
    return await this.transport.json(get(path`/api/artifacts/${artifactId}`), options);
  }

  /**
   * Deletes the artifact's files. Keeps the artifact's entry and manifest.
   *
   * Rejects with ConflictError if the artifact is in use.
   */
  async delete(artifactId: string, options?: RequestOptions): Promise<Artifact> {
    return await this.transport.json(remove(path`/api/artifacts/${artifactId}`), options);
  }

  /**
   * Reads the manifest from the registry.
   *
   * `verify` compares it with the manifest.json in the artifact's folder.
   */
  async manifest(artifactId: string, options?: RequestOptions): Promise<Manifest> {
    return await this.transport.json(get(path`/api/artifacts/${artifactId}/manifest`), options);
  }

  /** Lists the files in the artifact's manifest. */
  async files(artifactId: string, options?: RequestOptions): Promise<ManifestFile[]> {
    const request = get(path`/api/artifacts/${artifactId}/files`);
    return filesOf(await this.transport.json(request, options));
  }

  /**
   * Creates a link to one file, for a browser. The link works without a key, for one minute.
   *
   * The link's `url` is a path of the API: prepend the address of Forge.
   */
  async downloadTicket(
    artifactId: string,
    filePath: string,
    options?: RequestOptions,
  ): Promise<DownloadTicket> {
    const request = post(path`/api/artifacts/${artifactId}/tickets`, { path: filePath });
    return await this.transport.json(request, options);
  }

  /** Reads the artifact's lineage: its sources and everything derived from it. */
  async lineage(artifactId: string, options?: RequestOptions): Promise<Lineage> {
    return await this.transport.json(get(path`/api/artifacts/${artifactId}/lineage`), options);
  }

  /** Reads the first rows of a table, and statistics of its columns. */
  async preview(
    artifactId: string,
    file?: string | null,
    options?: RequestOptions,
  ): Promise<TablePreview> {
    const request = get(path`/api/artifacts/${artifactId}/preview`, { path: file });
    return await this.transport.json({ ...request, minTimeoutMs: SLOW_ANSWER_MS }, options);
  }

  /**
   * Yields the bytes of one file of the manifest. Resumes after a lost connection.
   *
   * Rejects with IntegrityError if the bytes do not match the manifest. This may be detected
   * only after the last byte.
   */
  async *readFile(
    artifactId: string,
    file: string,
    options?: RequestOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const found = await this.#file(artifactId, file, options);
    yield* intact(found, this.#content(artifactId, file, options));
  }

  /** Yields all files as one tar file, without a checksum. */
  readArchive(
    artifactId: string,
    options?: RequestOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    return download(this.transport, path`/api/artifacts/${artifactId}/archive`, options);
  }

  /**
   * Downloads one file to `target`, and returns `target`.
   *
   * The file appears at this path only after its content is verified.
   */
  async download(
    artifactId: string,
    file: string,
    target: string,
    { onProgress, ...options }: TransferOptions = {},
  ): Promise<string> {
    const found = await this.#file(artifactId, file, options);
    const chunks = intact(found, this.#content(artifactId, file, options));
    await disk.save(target, new Counter(found.size_bytes, onProgress).count(file, chunks));
    return target;
  }

  /**
   * Downloads all files and manifest.json to a directory. Skips files that are already correct.
   *
   * Rejects with IntegrityError if a file does not match the manifest. Rejects with UnsafePathError
   * if a file's path is not safe, for example because it leads out of the directory.
   */
  async pull(
    artifactId: string,
    directory: string,
    { onProgress, ...options }: TransferOptions = {},
  ): Promise<Pulled> {
    const content = (file: string) => this.#content(artifactId, file, options);
    return await disk.pull(
      await this.manifest(artifactId, options),
      content,
      directory,
      onProgress,
    );
  }

  /** Downloads all files as one tar file, and returns `target`. Prefer `pull`, which verifies. */
  async archive(artifactId: string, target: string, options?: RequestOptions): Promise<string> {
    await disk.save(target, this.readArchive(artifactId, options));
    return target;
  }

  /** Downloads all files and compares them with the manifest, without storing them. */
  async verify(
    artifactId: string,
    { onCheck, ...options }: CheckOptions = {},
  ): Promise<Verification> {
    const checks = {
      file: async (file: ManifestFile): Promise<FileCheck> => {
        try {
          return await checkContent(file, this.#content(artifactId, file.path, options));
        } catch (error) {
          return { path: file.path, outcome: "missing", detail: reasonOfGone(error) };
        }
      },
      storedManifest: async (): Promise<string | undefined> => {
        try {
          return await textOf(this.#content(artifactId, MANIFEST_FILE, options));
        } catch (error) {
          reasonOfGone(error);
          return undefined;
        }
      },
      extra: async () => [],
    };
    return await verify(artifactId, await this.manifest(artifactId, options), checks, onCheck);
  }

  /** Compares the files in a directory with the registry's manifest. */
  async verifyLocal(
    artifactId: string,
    directory: string,
    { onCheck, ...options }: CheckOptions = {},
  ): Promise<Verification> {
    const manifest = await this.manifest(artifactId, options);
    return await disk.verify(artifactId, manifest, directory, onCheck);
  }

  /** Reads the storage usage of all artifacts, now and over a month (`2026-11`, in UTC). */
  async storage(
    period?: string | null,
    { user_id }: OfUser = {},
    options?: RequestOptions,
  ): Promise<StorageUsage> {
    return await this.transport.json(get("/api/storage", { period, user_id }), options);
  }

  /** Reads the retention rules. */
  async retention({ user_id }: OfUser = {}, options?: RequestOptions): Promise<RetentionRules> {
    return await this.transport.json(get("/api/retention", { user_id }), options);
  }

  /** Replaces the retention rules: `[{ kind: "raw_dataset", keep_days: 30 }]`. */
  async setRetention(
    rules: RetentionRules["rules"],
    { user_id }: OfUser = {},
    options?: RequestOptions,
  ): Promise<RetentionRules> {
    return await this.transport.json(put("/api/retention", { rules }, { user_id }), options);
  }

  async #file(artifactId: string, file: string, options?: RequestOptions): Promise<ManifestFile> {
    const files = filesOf(await this.manifest(artifactId, options));
    const found = files.find((each) => each.path === file);
    if (found) return found;
    throw new ForgeError(`the manifest of ${artifactId} has no file ${JSON.stringify(file)}`);
  }

  #content(artifactId: string, file: string, options?: RequestOptions): AsyncIterable<Uint8Array> {
    const names = segmentsOf(file).map(encodeURIComponent).join("/");
    const address = `${path`/api/artifacts/${artifactId}`}/files/${names}`;
    return download(this.transport, address, options);
  }
}

/** Returns the reason that the API gives for a missing file. Rethrows other errors. */
function reasonOfGone(error: unknown): string {
  const gone = ["404 file_not_found", "410 artifact_deleted"];
  if (error instanceof ForgeAPIError && gone.includes(`${error.status} ${error.code}`)) {
    return error.reason;
  }
  throw error;
}
