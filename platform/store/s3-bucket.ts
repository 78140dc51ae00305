import { createHash } from "node:crypto";
import type { S3 } from "@aws-sdk/client-s3";
import {
  byPath,
  requireKey,
  type SignedUpload,
  type SizeAndChecksum,
  type StoredObject,
  StoreUnavailable,
} from "./object-store";
import {
  asUnavailable,
  connectS3,
  isMissing,
  orUnavailable,
  type S3Settings,
  statusOf,
} from "./s3-client";

const MAX_REMOVED_AT_ONCE = 1_000;
/** Maximum number of times that one download is resumed after an error. */
const MAX_RESUMES = 3;

export interface S3BucketSettings extends S3Settings {
  /** How long a signed URL is valid, in seconds. */
  signedUrlTtlS: number;
}

/** S3's own operations on one bucket. Connects at first use. */
export class S3Bucket {
  private client: Promise<S3> | undefined;

  constructor(private readonly settings: S3BucketSettings) {}

  async put(key: string, body: Buffer): Promise<void> {
    const ChecksumSHA256 = createHash("sha256").update(body).digest("base64");
    await this.call((s3, at) => s3.putObject({ ...at(key), Body: body, ChecksumSHA256 }));
  }

  /** Copies an object within the bucket. It must be small enough for one CopyObject request. */
  async copy(from: string, to: string): Promise<void> {
    const CopySource = this.sourceOf(from);
    await this.call((s3, at) => s3.copyObject({ ...at(to), CopySource }));
  }

  async sizeOf(key: string): Promise<number | undefined> {
    const head = await this.find((s3, at) => s3.headObject(at(key), withDeadline()));
    return head?.ContentLength;
  }

  /** The SHA-256 (hex) that S3 verified. Undefined for objects that were uploaded in parts. */
  async checksumOf(key: string): Promise<string | undefined> {
    const head = await this.find((s3, at) =>
      s3.headObject({ ...at(key), ChecksumMode: "ENABLED" }, withDeadline()),
    );
    // The checksum of an object in parts is a checksum of checksums, not of its bytes.
    if (!head?.ChecksumSHA256 || head.ChecksumSHA256.includes("-")) return undefined;
    return Buffer.from(head.ChecksumSHA256, "base64").toString("hex");
  }

  /** Reads an object from `start` to `end`, inclusive. Resumes after a broken connection. */
  async *stream(key: string, start: number, end: number, opened?: Opened): AsyncGenerator<Buffer> {
    let body = opened;
    let position = start;
    let etag: string | undefined;
    for (let resumes = 0; position <= end; body = undefined) {
      try {
        body ??= await this.open(key, position, end, etag);
        if (!body) throw missing(key);
        etag ??= body.etag;
        const until = position + (body.length ?? (await this.bytesFrom(key, position, end)));
        for await (const chunk of body.bytes) {
          position += chunk.length;
          yield chunk;
        }
        // A proxy may end a body early without an error, if it announced no length.
        if (position < until) throw new Error(`"${key}" ended early`);
        return;
      } catch (error) {
        if (isMissing(error)) throw error;
        if (++resumes > MAX_RESUMES) throw asUnavailable(error);
      }
    }
  }

  /** Opens a download; undefined: no such object. With `etag`, fails if the object was replaced. */
  async open(key: string, start: number, end: number, etag?: string): Promise<Opened | undefined> {
    const Range =
      end === Number.MAX_SAFE_INTEGER
        ? start > 0 && `bytes=${start}-`
        : `bytes=${start}-${Math.max(start, end)}`;
    const found = await this.find((s3, at) =>
      s3.getObject({ ...at(key), ...(Range ? { Range } : {}), IfMatch: etag }),
    );
    if (!found) return undefined;
    const from = /^bytes (\d+)-/.exec(found.ContentRange ?? "")?.[1] ?? 0;
    if (Number(from) !== start) throw new StoreUnavailable("the bucket sent another range");
    return {
      bytes: found.Body as Opened["bytes"],
      etag: found.ETag,
      length: found.ContentLength,
    };
  }

  /** How many bytes an object has from `start` to `end`, inclusive. */
  private async bytesFrom(key: string, start: number, end: number): Promise<number> {
    return Math.min(end + 1, (await this.sizeOf(key)) ?? 0) - start;
  }

  async remove(key: string): Promise<void> {
    await this.call((s3, at) => s3.deleteObject(at(key)));
  }

  async removeAll(prefix: string): Promise<void> {
    const paths = (await this.list(prefix)).map(({ path }) => `${prefix}${path}`);
    while (paths.length > 0) await this.removeMany(paths.splice(0, MAX_REMOVED_AT_ONCE));
  }

  private async removeMany(keys: string[]): Promise<void> {
    const s3 = await this.s3();
    const Delete = { Objects: keys.map((Key) => ({ Key })), Quiet: true };
    try {
      const { Errors = [] } = await orUnavailable(
        s3.deleteObjects({ Bucket: this.settings.bucket, Delete }),
      );
      if (Errors[0])
        throw new StoreUnavailable(`the bucket did not delete an object: ${Errors[0].Code}`);
    } catch (error) {
      // 400: perhaps the store refuses the checksum that the SDK sends with a list of keys. Then
      // delete the objects one by one.
      if (!(error instanceof StoreUnavailable && error.status === 400)) throw error;
      for (const key of keys) await this.call((client, at) => client.deleteObject(at(key)));
    }
  }

  async list(prefix: string): Promise<StoredObject[]> {
    const s3 = await this.s3();
    const Prefix = requireKey(prefix);
    const found: StoredObject[] = [];
    let ContinuationToken: string | undefined;
    do {
      const page = await orUnavailable(
        s3.listObjectsV2(
          { Bucket: this.settings.bucket, Prefix, ContinuationToken },
          withDeadline(),
        ),
      );
      for (const { Key = "", Size = 0 } of page.Contents ?? []) {
        // Some tools create an empty object for a folder.
        if (!Key.endsWith("/")) found.push({ path: Key.slice(Prefix.length), sizeBytes: Size });
      }
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    return found.sort(byPath);
  }

  async check(): Promise<void> {
    const { bucket } = this.settings;
    const s3 = await this.s3();
    try {
      await s3.headBucket({ Bucket: bucket });
    } catch (error) {
      const status = statusOf(error);
      if (status === undefined || status >= 500) throw asUnavailable(error);
      const why = status === 404 ? "does not exist" : `can't be used with these credentials`;
      throw new Error(`bucket "${bucket}" ${why} (HTTP ${status})`);
    }
  }

  async signDownload(key: string): Promise<string> {
    const { GetObjectCommand } = await import("@aws-sdk/client-s3");
    const { getSignedUrl } = await import("@aws-sdk/s3-request-presigner");
    const command = new GetObjectCommand({
      ...this.at(key),
      ResponseContentType: "application/octet-stream",
    });
    return await getSignedUrl(await this.s3(), command, { expiresIn: this.settings.signedUrlTtlS });
  }

  async signUpload(key: string, { sizeBytes, sha256 }: SizeAndChecksum): Promise<SignedUpload> {
    const { PutObjectCommand } = await import("@aws-sdk/client-s3");
    const { getSignedUrl } = await import("@aws-sdk/s3-request-presigner");
    const checksum = Buffer.from(sha256, "hex").toString("base64");
    const command = new PutObjectCommand({
      ...this.at(key),
      ContentLength: sizeBytes,
      ChecksumSHA256: checksum,
    });
    const url = await getSignedUrl(await this.s3(), command, {
      expiresIn: this.settings.signedUrlTtlS,
      // The checksum must be a header: a store may ignore it in the URL.
      unhoistableHeaders: new Set(["x-amz-checksum-sha256"]),
      signableHeaders: new Set(["content-length", "host"]),
    });
    return {
      url,
      headers: { "x-amz-checksum-sha256": checksum, "content-length": String(sizeBytes) },
    };
  }

  s3(): Promise<S3> {
    this.client ??= connectS3(this.settings);
    return this.client;
  }

  readonly at = (key: string): { Bucket: string; Key: string } => ({
    Bucket: this.settings.bucket,
    Key: requireKey(key),
  });

  /** The source of a copy, in S3's notation. */
  sourceOf(key: string): string {
    return `${this.settings.bucket}/${requireKey(key).split("/").map(encodeURIComponent).join("/")}`;
  }

  private async call<T>(request: (s3: S3, at: S3Bucket["at"]) => Promise<T>): Promise<T> {
    return await orUnavailable(request(await this.s3(), this.at));
  }

  /** Like `call`, but returns undefined if the object is missing. */
  private async find<T>(
    request: (s3: S3, at: S3Bucket["at"]) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await request(await this.s3(), this.at);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw asUnavailable(error);
    }
  }
}

interface Opened {
  bytes: AsyncIterable<Buffer>;
  etag: string | undefined;
  /** Undefined if the response does not announce its length. */
  length: number | undefined;
}

/** Deadline of a metadata request, including retries. */
const METADATA_DEADLINE_MS = 8_000;
const withDeadline = (): { abortSignal: AbortSignal } => ({
  abortSignal: AbortSignal.timeout(METADATA_DEADLINE_MS),
});

/**
 * An error for a missing object. It has the form of S3's own error, so that isMissing is true for
 * it.
 */
export const missing = (key: string): Error =>
  Object.assign(new Error(`no object "${key}"`), { $metadata: { httpStatusCode: 404 } });
