import { createHash } from "node:crypto";
import type { CompletedPart, S3 } from "@aws-sdk/client-s3";
import type { ByteRange } from "./object-store";

const MEBIBYTE = 1024 * 1024;
/** S3's minimum part size; the last part may be smaller. */
const MIN_PART_BYTES = 5 * MEBIBYTE;
/**
 * Maximum number of bytes that one request copies. A larger copy may exceed the idle time-out of
 * the connection.
 */
const MAX_COPIED_BYTES = 256 * MEBIBYTE;
/** S3's maximum number of parts. */
const MAX_PARTS = 10_000;
/** For a stream of unknown length, the part size doubles after each group of this many parts. */
const PARTS_OF_ONE_SIZE = 1_000;

interface Target {
  Bucket: string;
  Key: string;
}

/**
 * Writes an object in parts. The object appears when it is complete. At most two parts are in
 * memory: one is sent while the other fills. S3 verifies the SHA-256 of each part, unless the
 * object is joined from other objects (`isChecked`). A small object takes one request.
 */
export class PartedUpload {
  private uploadId: string | undefined;
  private readonly parts: CompletedPart[] = [];
  /** The bytes of one buffer are sent while the other buffer is filled. */
  private readonly buffers: [Buffer, Buffer] = [Buffer.alloc(0), Buffer.alloc(0)];
  private filling: 0 | 1 = 0;
  private heldBytes = 0;
  private sending: Promise<void> = Promise.resolve();

  /** @param sizeBytes size of the object, if it is joined from objects in the bucket. */
  constructor(
    private readonly s3: S3,
    private readonly target: Target,
    private readonly sizeBytes?: number,
  ) {}

  async write(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      const buffer = this.bufferFor(chunk.length - at);
      const taken = chunk.copy(buffer, this.heldBytes, at);
      this.heldBytes += taken;
      at += taken;
      if (this.heldBytes === this.partBytes) await this.flush();
    }
  }

  /**
   * Returns the buffer that is being filled, with free space for at least one byte. It grows on
   * demand, because small objects need little memory.
   */
  private bufferFor(bytes: number): Buffer {
    const held = this.buffers[this.filling];
    if (held.length > this.heldBytes) return held;
    const size = Math.min(this.partBytes, Math.max(2 * held.length, this.heldBytes + bytes));
    const larger = Buffer.allocUnsafeSlow(size);
    held.copy(larger, 0, 0, this.heldBytes);
    this.buffers[this.filling] = larger;
    return larger;
  }

  private get held(): Buffer {
    return this.buffers[this.filling].subarray(0, this.heldBytes);
  }

  /**
   * Copies bytes of another object within S3. Returns false without copying in two cases: there are
   * too few bytes for a part, or earlier bytes are still in the buffer. The caller must then pass
   * the bytes to `write`.
   */
  async copy(CopySource: string, { start, end }: ByteRange): Promise<boolean> {
    if (this.heldBytes > 0 || end - start + 1 < Math.max(MIN_PART_BYTES, this.partBytes))
      return false;
    await this.sending;
    for (let at = start; at <= end; at += MAX_COPIED_BYTES) {
      const last = Math.min(end, at + MAX_COPIED_BYTES - 1);
      const PartNumber = this.parts.length + 1;
      const part = { PartNumber, CopySource, CopySourceRange: `bytes=${at}-${last}` };
      const UploadId = await this.begin();
      const copied = await this.s3.uploadPartCopy({ ...this.target, ...part, UploadId });
      this.parts.push({ PartNumber, ETag: copied.CopyPartResult?.ETag });
    }
    return true;
  }

  async complete(): Promise<void> {
    if (this.uploadId === undefined) {
      const Body = this.held;
      await this.s3.putObject({ ...this.target, Body, ChecksumSHA256: sha256(Body) });
      return;
    }
    if (this.heldBytes > 0) await this.flush();
    await this.sending;
    await this.s3.completeMultipartUpload({
      ...this.target,
      UploadId: this.uploadId,
      MultipartUpload: { Parts: this.parts },
    });
  }

  /** Removes all parts. If this fails, the bucket's lifecycle rule must remove the upload. */
  async abort(): Promise<void> {
    await this.sending.catch(() => undefined);
    const { uploadId: UploadId } = this;
    if (UploadId === undefined) return;
    await this.s3.abortMultipartUpload({ ...this.target, UploadId }).catch(() => undefined);
  }

  /** The size of a part: large enough for the object to fit into 10,000 parts. */
  private get partBytes(): number {
    if (this.sizeBytes !== undefined) {
      return Math.max(MIN_PART_BYTES, Math.ceil(this.sizeBytes / (MAX_PARTS - 1_000)));
    }
    return MIN_PART_BYTES * 2 ** Math.floor(this.parts.length / PARTS_OF_ONE_SIZE);
  }

  /**
   * Whether parts are sent with a checksum that S3 verifies. False if the object is joined from
   * other objects (`sizeBytes` is given), because parts may then be copied. For a copied part, some
   * stores report the checksum of the whole source object, and later refuse that checksum.
   */
  private get isChecked(): boolean {
    return this.sizeBytes === undefined;
  }

  private async flush(): Promise<void> {
    await this.sending;
    const Body = this.held;
    this.filling = this.filling === 0 ? 1 : 0;
    this.heldBytes = 0;
    const UploadId = await this.begin();
    const PartNumber = this.parts.length + 1;
    this.parts.push({ PartNumber });
    this.sending = this.send(Body, UploadId, PartNumber);
    // A later `await this.sending` throws the error. This line prevents an unhandled rejection.
    this.sending.catch(() => undefined);
  }

  private async send(Body: Buffer, UploadId: string, PartNumber: number): Promise<void> {
    const checksum = this.isChecked ? { ChecksumSHA256: sha256(Body) } : {};
    const part = { ...this.target, UploadId, PartNumber, Body, ...checksum };
    const { ETag } = await this.s3.uploadPart(part);
    this.parts[PartNumber - 1] = { PartNumber, ETag, ...checksum };
  }

  private async begin(): Promise<string> {
    if (this.uploadId === undefined) {
      const { UploadId } = await this.s3.createMultipartUpload({
        ...this.target,
        ...(this.isChecked ? { ChecksumAlgorithm: "SHA256" } : {}),
      });
      if (UploadId === undefined) throw new Error("the bucket returned no upload id");
      this.uploadId = UploadId;
    }
    return this.uploadId;
  }
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("base64");
