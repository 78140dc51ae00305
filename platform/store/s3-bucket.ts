import { createHash } from "node:crypto";
import type { S3 } from "@aws-sdk/client-s3";
import {
  byPath,
  type Measured,
  requireKey,
  type SignedUpload,
  StoreAway,
  type StoredObject,
} from "./object-store";
import { asAway, away, connectS3, isMissing, type S3Settings, statusOf } from "./s3-client";

const MAX_REMOVED_AT_ONCE = 1_000;
/** A download that breaks off goes on where it was, so many times. */
const MAX_BREAKS = 3;

export interface S3BucketSettings extends S3Settings {
  /** How long a signed address is good, in seconds. */
  signedUrlTtlS: number;
}

/** One bucket, and what is done to whole objects of it. Connected to when it is first used. */
export class S3Bucket {
  private client: Promise<S3> | undefined;

  constructor(private readonly settings: S3BucketSettings) {}

  async put(key: string, body: Buffer): Promise<void> {
    const ChecksumSHA256 = createHash("sha256").update(body).digest("base64");
    await this.ask((s3, at) => s3.putObject({ ...at(key), Body: body, ChecksumSHA256 }));
  }

  /** Within the bucket; of an object that S3 copies in one request. */
  async copy(from: string, to: string): Promise<void> {
    const CopySource = this.sourceOf(from);
    await this.ask((s3, at) => s3.copyObject({ ...at(to), CopySource }));
  }

  async sizeOf(key: string): Promise<number | undefined> {
    const head = await this.find((s3, at) => s3.headObject(at(key), soon()));
    return head?.ContentLength;
  }

  /** The SHA-256 (hex) that S3 has checked itself, of an object that came to it whole. */
  async checksumOf(key: string): Promise<string | undefined> {
    const head = await this.find((s3, at) =>
      s3.headObject({ ...at(key), ChecksumMode: "ENABLED" }, soon()),
    );
    // That of an object in parts is one of checksums, and not of its bytes.
    if (!head?.ChecksumSHA256 || head.ChecksumSHA256.includes("-")) return undefined;
    return Buffer.from(head.ChecksumSHA256, "base64").toString("hex");
  }

  /** Bytes of one object from `start` to `end`, over broken connections. */
  async *read(key: string, start: number, end: number, opened?: Opened): AsyncGenerator<Buffer> {
    let body = opened;
    let position = start;
    let etag: string | undefined;
    for (let breaks = 0; position <= end; body = undefined) {
      try {
        body ??= await this.open(key, position, end, etag);
        if (!body) throw missing(key);
        etag ??= body.etag;
        for await (const chunk of body.bytes) {
          position += chunk.length;
          yield chunk;
        }
        return;
      } catch (error) {
        if (isMissing(error)) throw error;
        if (++breaks > MAX_BREAKS) throw asAway(error);
      }
    }
  }

  /**
   * The same of one connection. Undefined: there is no such object.
   *
   * @param etag of the object that was begun: another in its place is not gone on with.
   */
  async open(key: string, start: number, end: number, etag?: string): Promise<Opened | undefined> {
    const Range =
      end === Number.MAX_SAFE_INTEGER
        ? start > 0 && `bytes=${start}-`
        : `bytes=${start}-${Math.max(start, end)}`;
    const found = await this.find((s3, at) =>
      s3.getObject({ ...at(key), ...(Range ? { Range } : {}), IfMatch: etag }),
    );
    return found && { bytes: found.Body as Opened["bytes"], etag: found.ETag };
  }

  async remove(key: string): Promise<void> {
    await this.ask((s3, at) => s3.deleteObject(at(key)));
  }

  async removeAll(prefix: string): Promise<void> {
    const paths = (await this.list(prefix)).map(({ path }) => `${prefix}${path}`);
    while (paths.length > 0) await this.removeMany(paths.splice(0, MAX_REMOVED_AT_ONCE));
  }

  private async removeMany(keys: string[]): Promise<void> {
    const s3 = await this.s3();
    const Delete = { Objects: keys.map((Key) => ({ Key })), Quiet: true };
    try {
      const { Errors = [] } = await away(
        s3.deleteObjects({ Bucket: this.settings.bucket, Delete }),
      );
      if (Errors[0]) throw new StoreAway(`the bucket does not remove: ${Errors[0].Code}`);
    } catch (error) {
      // Not every store takes the checksum that the SDK sends with a list of keys.
      if (!(error instanceof StoreAway && error.status === 400)) throw error;
      for (const key of keys) await this.ask((client, at) => client.deleteObject(at(key)));
    }
  }

  async list(prefix: string): Promise<StoredObject[]> {
    const s3 = await this.s3();
    const Prefix = requireKey(prefix);
    const found: StoredObject[] = [];
    let ContinuationToken: string | undefined;
    do {
      const page = await away(
        s3.listObjectsV2({ Bucket: this.settings.bucket, Prefix, ContinuationToken }, soon()),
      );
      for (const { Key = "", Size = 0 } of page.Contents ?? []) {
        // Some tools make an empty object for a folder.
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
      if (status === undefined || status >= 500) throw asAway(error);
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

  async signUpload(key: string, { sizeBytes, sha256 }: Measured): Promise<SignedUpload> {
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
      // Else they would stand in the address, where a store need not look at them.
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

  /** How a copy names what it is of. */
  sourceOf(key: string): string {
    return `${this.settings.bucket}/${requireKey(key).split("/").map(encodeURIComponent).join("/")}`;
  }

  private async ask<T>(call: (s3: S3, at: S3Bucket["at"]) => Promise<T>): Promise<T> {
    return await away(call(await this.s3(), this.at));
  }

  /** The same of what may not be there. */
  private async find<T>(call: (s3: S3, at: S3Bucket["at"]) => Promise<T>): Promise<T | undefined> {
    try {
      return await call(await this.s3(), this.at);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw asAway(error);
    }
  }
}

interface Opened {
  bytes: AsyncIterable<Buffer>;
  etag: string | undefined;
}

/** A question that is answered from memory there has so long, all its tries together. */
const QUESTION_MS = 8_000;
const soon = (): { abortSignal: AbortSignal } => ({
  abortSignal: AbortSignal.timeout(QUESTION_MS),
});

/** Looks like S3's own word for it. */
export const missing = (key: string): Error =>
  Object.assign(new Error(`no object "${key}"`), { $metadata: { httpStatusCode: 404 } });
