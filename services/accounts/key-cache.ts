import { Batcher } from "../../platform/concurrency/batcher";
import { Coalesced } from "../../platform/concurrency/coalesce";
import type { Queryable } from "../../platform/postgres/pool";
import type { Signals } from "../../platform/signals";
import { type AuthenticatingRow, findKeys } from "./keys";

const WINDOW_MS = 100;
const MAX_BATCH = 500;
/**
 * How long a found key is cached, in ms. If another process revokes a key and the notification is
 * lost, this process still rejects the key within a second.
 */
const CACHE_MS = 900;
const MAX_CACHED = 10_000;

type Found = AuthenticatingRow | undefined;

/**
 * Finds keys by their digests. Caches found keys for CACHE_MS, because most requests use a recently
 * used key.
 *
 * Database lookups run one at a time, so a flood of requests uses one connection. Requests that
 * arrive during a lookup share the next lookup. There is one exception: requests that can wait are
 * collected for WINDOW_MS, and then looked up as a separate batch.
 *
 * The cache is cleared when any process revokes a key. It is also cleared when `signals`
 * reconnects, because notifications may have been lost.
 */
export class KeyCache {
  private readonly immediate: Coalesced<Buffer, Found>;
  private readonly batched: Batcher<Buffer, Found>;
  /** By digest, in hex. */
  private cache = new Map<string, { key: AuthenticatingRow; untilMs: number }>();

  constructor(
    private readonly db: Queryable,
    signals: Pick<Signals, "on">,
    private readonly nowMs: () => number,
  ) {
    this.immediate = new Coalesced((digests) => this.findAll(digests), {
      maxSize: MAX_BATCH,
    });
    this.batched = new Batcher((digests) => this.findAll(digests), WINDOW_MS, MAX_BATCH);
    // Replace the map instead of emptying it: a running lookup may have read the key before the
    // revocation, and must add it to the old map only.
    const clear = (): void => {
      this.cache = new Map();
    };
    signals.on("revoked", clear);
    signals.on("reconnected", clear);
  }

  async find(digest: Buffer, canWait: boolean): Promise<Found> {
    const cached = this.cache.get(digest.toString("hex"));
    if (cached && cached.untilMs > this.nowMs()) return cached.key;
    return await (canWait ? this.batched : this.immediate).add(digest);
  }

  private async findAll(digests: Buffer[]): Promise<Found[]> {
    const { cache } = this;
    const startMs = this.nowMs();
    const texts = digests.map((digest) => digest.toString("hex"));
    const unique = new Map(texts.map((text, at) => [text, digests[at] as Buffer]));
    const rows = await findKeys(this.db, [...unique.values()]);
    if (cache.size > MAX_CACHED) cache.clear();
    for (const key of rows) {
      const untilMs = startMs + Math.min(CACHE_MS, key.expires_in_ms ?? Infinity);
      // Requests served from the cache must not update `last_used_at`.
      cache.set(key.digest.toString("hex"), { key: { ...key, is_touch_due: false }, untilMs });
    }
    const found = new Map(rows.map((row) => [row.digest.toString("hex"), row]));
    return texts.map((text) => found.get(text));
  }
}
