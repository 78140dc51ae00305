import { createHash } from "node:crypto";
import type { CompletedPart, S3 } from "@aws-sdk/client-s3";
import type { ByteRange } from "./object-store";

const MEBIBYTE = 1024 * 1024;
/** S3 takes no smaller part but the last, no larger one, and no more of them. */
const MIN_PART_BYTES = 5 * MEBIBYTE;
/** Of a copy, so that its answer comes before anybody takes the connection for dead. */
const MAX_COPIED_BYTES = 256 * MEBIBYTE;
const MAX_PARTS = 10_000;
/** Of a stream whose length nobody knows: after so many parts the next are twice as large. */
const PARTS_OF_ONE_SIZE = 1_000;
const FIRST_PART_BYTES = MIN_PART_BYTES;

const NONE = Buffer.alloc(0);

interface Target {
  Bucket: string;
  Key: string;
}

/**
 * An object written in parts, which appears when it is complete. At most two parts are in memory: one
 * that is sent, with its SHA-256 for S3 to check, and one that fills meanwhile. A small object is one
 * request.
 */
export class PartedUpload {
  private uploadId: string | undefined;
  private readonly parts: CompletedPart[] = [];
  /** Two, used in turn: while one is sent, the other fills. */
  private readonly buffers: [Buffer, Buffer] = [NONE, NONE];
  private filling: 0 | 1 = 0;
  private heldBytes = 0;
  private sending: Promise<void> = Promise.resolve();

  /** @param sizeBytes of the whole, where it is joined of what the bucket has. */
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

  /** The buffer that fills, with room for more: a small object needs no large one. */
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

  /** Takes bytes of another object without reading them; false where S3 would not take such a part. */
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

  /** Leaves nothing; what can't be removed now is for the bucket's own rule on unfinished uploads. */
  async abort(): Promise<void> {
    await this.sending.catch(() => undefined);
    const { uploadId: UploadId } = this;
    if (UploadId === undefined) return;
    await this.s3.abortMultipartUpload({ ...this.target, UploadId }).catch(() => undefined);
  }

  /** Parts must be large enough for all of the object to be 10,000 of them. */
  private get partBytes(): number {
    if (this.sizeBytes !== undefined) {
      return Math.max(FIRST_PART_BYTES, Math.ceil(this.sizeBytes / (MAX_PARTS - 1_000)));
    }
    return FIRST_PART_BYTES * 2 ** Math.floor(this.parts.length / PARTS_OF_ONE_SIZE);
  }

  /**
   * Parts that come through us are checked on their way. Of copies stores say different things: some give
   * the checksum of the whole source for that of the part, and would then refuse it.
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
    // Whoever waits for it hears of it; until then nobody does.
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
      if (UploadId === undefined) throw new Error("the bucket began an upload without a name");
      this.uploadId = UploadId;
    }
    return this.uploadId;
  }
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("base64");
