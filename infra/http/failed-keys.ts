import { ForgeError } from "../../core/errors";

/** Unknown keys that an address may send at once, and again by the second. */
const BURST = 50;
const PER_SECOND = 1;
const MAX_ADDRESSES = 10_000;
const MAX_GOOD = 10_000;

interface Bucket {
  tokens: number;
  atMs: number;
}

/**
 * Holds off an address that sends key after key which nobody has: each costs a look into the database. A
 * key that was good the last time is looked up all the same, so that whoever shares the address goes on.
 * A key of a wrong form or checksum is refused without the database, and counts nothing.
 */
export class FailedKeys {
  private readonly buckets = new Map<string, Bucket>();
  /** Digests, in order of their last use. */
  private readonly good = new Set<string>();

  constructor(private readonly nowMs: () => number) {}

  /** @throws 429 `rate_limited` when this address has sent too many that are none. */
  admit(address: string, digest: Buffer): void {
    if (this.good.has(digest.toString("hex")) || this.tokensOf(address) >= 1) return;
    const message = "too many keys from this address opened nothing; try again shortly";
    throw new ForgeError(429, "rate_limited", message);
  }

  failed(address: string, digest: Buffer): void {
    this.good.delete(digest.toString("hex"));
    const tokens = Math.max(0, this.tokensOf(address) - 1);
    this.buckets.delete(address);
    this.buckets.set(address, { tokens, atMs: this.nowMs() });
    forgetOldest(this.buckets, MAX_ADDRESSES);
  }

  succeeded(digest: Buffer): void {
    const text = digest.toString("hex");
    this.good.delete(text);
    this.good.add(text);
    forgetOldest(this.good, MAX_GOOD);
  }

  private tokensOf(address: string): number {
    const bucket = this.buckets.get(address);
    if (!bucket) return BURST;
    return Math.min(BURST, bucket.tokens + ((this.nowMs() - bucket.atMs) / 1000) * PER_SECOND);
  }
}

/** Maps and Sets go by age of entry. */
function forgetOldest(entries: Map<string, unknown> | Set<string>, max: number): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= max) return;
    entries.delete(oldest);
  }
}
