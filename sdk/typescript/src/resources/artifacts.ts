import { disk } from "#disk";
import type { Pulled } from "../disk/disk.ts";
import { download } from "../download.ts";
import { ForgeAPIError, ForgeError } from "../errors.ts";
import { textOf } from "../exchange.ts";
import type { Listing, ListOptions } from "../listing.ts";
import type { Moment, RequestOptions } from "../options.ts";
import { segmentsOf } from "../paths.ts";
import { Counter, type OnProgress } from "../progress.ts";
import { get, path, post, SLOW_ANSWER_MS } from "../request.ts";
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

export interface ArtifactFilters extends ListOptions {
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
  user_id?: string | undefined;
}

export interface TransferOptions extends RequestOptions {
  onProgress?: OnProgress | undefined;
}

export interface CheckOptions extends RequestOptions {
  /** Is told of each file as soon as it has been looked at. */
  onCheck?: OnCheck | undefined;
}

interface OfUser {
  user_id?: string | undefined;
}

/** `client.artifacts`. What takes a path on a disk works in Node only. */
export class Artifacts extends Resource {
  /** Artifacts, newest first; `limit` is how many in all. */
  list(filters: ArtifactFilters = {}, options?: RequestOptions): Listing<Artifact> {
    return this.listing({ path: "/api/artifacts", name: "artifacts", query: filters, options });
  }

  /** An artifact, with its manifest. */
  async get(artifactId: string, options?: RequestOptions): Promise<Artifact> {
    return await this.transport.json(get(path`/api/artifacts/${artifactId}`), options);
  }

  /** Deletes its files; its entry and manifest stay. Rejects with ConflictError where it is needed. */
  async delete(artifactId: string, options?: RequestOptions): Promise<Artifact> {
    const request = { method: "DELETE", path: path`/api/artifacts/${artifactId}` };
    return await this.transport.json(request, options);
  }

  /** What the registry has on it; manifest.json in its folder should be the same. */
  async manifest(artifactId: string, options?: RequestOptions): Promise<Manifest> {
    return await this.transport.json(get(path`/api/artifacts/${artifactId}/manifest`), options);
  }

  /** The files that its manifest names. */
  async files(artifactId: string, options?: RequestOptions): Promise<ManifestFile[]> {
    const request = get(path`/api/artifacts/${artifactId}/files`);
    return filesOf(await this.transport.json(request, options));
  }

  /**
   * A link to one file that works for a minute without a key, for a browser. Its `url` is a path of the
   * API: put the address of Forge before it.
   */
  async downloadTicket(
    artifactId: string,
    filePath: string,
    options?: RequestOptions,
  ): Promise<DownloadTicket> {
    const request = post(path`/api/artifacts/${artifactId}/tickets`, { path: filePath });
    return await this.transport.json(request, options);
  }

  /** What it was made from, and what was made from it. */
  async lineage(artifactId: string, options?: RequestOptions): Promise<Lineage> {
    return await this.transport.json(get(path`/api/artifacts/${artifactId}/lineage`), options);
  }

  /** The first rows of a table, and statistics of its columns. */
  async preview(
    artifactId: string,
    file?: string | null,
    options?: RequestOptions,
  ): Promise<TablePreview> {
    const request = get(path`/api/artifacts/${artifactId}/preview`, { path: file });
    return await this.transport.json({ ...request, answerMs: SLOW_ANSWER_MS }, options);
  }

  /**
   * The bytes of one file that the manifest names, as they come; goes on where a connection broke.
   *
   * Rejects with IntegrityError, at the end at the latest, where they are not what the manifest says.
   */
  async *readFile(
    artifactId: string,
    file: string,
    options?: RequestOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const found = await this.#file(artifactId, file, options);
    yield* intact(found, this.#content(artifactId, file, options));
  }

  /** All of it as one tar file, as it comes. It has no checksum. */
  readArchive(
    artifactId: string,
    options?: RequestOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    return download(this.transport, path`/api/artifacts/${artifactId}/archive`, options);
  }

  /** `readFile` onto a disk; the file takes its name only when it is right. Its path. */
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
   * Fetches all files, and manifest.json, into a directory; what is there and right is not fetched.
   *
   * Rejects with IntegrityError, and UnsafePathError where a file would not stay in the directory.
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

  /** `readArchive` onto a disk: `pull` is the safer way. Its path. */
  async archive(artifactId: string, target: string, options?: RequestOptions): Promise<string> {
    await disk.save(target, this.readArchive(artifactId, options));
    return target;
  }

  /** Downloads all files, keeps none, and compares them with the manifest. */
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

  /** What all of them take now, and over a month (`2026-11`, in UTC). */
  async storage(
    period?: string | null,
    { user_id }: OfUser = {},
    options?: RequestOptions,
  ): Promise<StorageUsage> {
    return await this.transport.json(get("/api/storage", { period, user_id }), options);
  }

  /** For how long which kinds are kept. */
  async retention({ user_id }: OfUser = {}, options?: RequestOptions): Promise<RetentionRules> {
    return await this.transport.json(get("/api/retention", { user_id }), options);
  }

  /** Replaces the rules: `[{ kind: "raw_dataset", keep_days: 30 }]`. */
  async setRetention(
    rules: RetentionRules["rules"],
    { user_id }: OfUser = {},
    options?: RequestOptions,
  ): Promise<RetentionRules> {
    const request = { ...get("/api/retention", { user_id }), method: "PUT", body: { rules } };
    return await this.transport.json(request, options);
  }

  async #file(artifactId: string, file: string, options?: RequestOptions): Promise<ManifestFile> {
    const files = filesOf(await this.manifest(artifactId, options));
    const found = files.find((each) => each.path === file);
    if (found) return found;
    throw new ForgeError(`the manifest of ${artifactId} names no file ${JSON.stringify(file)}`);
  }

  #content(artifactId: string, file: string, options?: RequestOptions): AsyncIterable<Uint8Array> {
    const names = segmentsOf(file).map(encodeURIComponent).join("/");
    const address = `${path`/api/artifacts/${artifactId}`}/files/${names}`;
    return download(this.transport, address, options);
  }
}

/** What the API says of a file that is not there; throws what is something else. */
function reasonOfGone(error: unknown): string {
  const gone = ["404 file_not_found", "410 artifact_deleted"];
  if (error instanceof ForgeAPIError && gone.includes(`${error.status} ${error.code}`)) {
    return error.reason;
  }
  throw error;
}
