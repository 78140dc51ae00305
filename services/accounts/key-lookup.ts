import { Batcher } from "../../platform/concurrency/batcher";
import { Coalesced } from "../../platform/concurrency/coalesce";
import type { Queryable } from "../../platform/postgres/pool";
import type { Signals } from "../../platform/signals";
import { type AuthenticatingRow, findKeys } from "./keys";

const WINDOW_MS = 100;
const MAX_BATCH = 500;
/** A key that was found is good for so long: one that another process revokes is dead here within a second. */
const GOOD_FOR_MS = 900;
const MAX_REMEMBERED = 10_000;

type Found = AuthenticatingRow | undefined;

interface Remembered {
  key: AuthenticatingRow;
  untilMs: number;
}

/**
 * Finds keys by their digests, in the database once a second: most requests come with a key that was used a
 * moment ago. One look-up at a time, so that floods of requests take one connection; requests that nobody waits
 * for are gathered for longer. A key that this process revokes, or hears of, is dead here at once.
 */
export class KeyLookup {
  private readonly prompt: Coalesced<Buffer, Found>;
  private readonly patient: Batcher<Buffer, Found>;
  /** By digest, in hex. */
  private remembered = new Map<string, Remembered>();

  constructor(
    private readonly db: Queryable,
    signals: Pick<Signals, "on">,
    private readonly nowMs: () => number,
  ) {
    this.prompt = new Coalesced((digests) => this.findAll(digests), MAX_BATCH);
    this.patient = new Batcher((digests) => this.findAll(digests), WINDOW_MS, MAX_BATCH);
    // Looks that are under way note what they find in the map that is forgotten with this.
    const forget = (): void => {
      this.remembered = new Map();
    };
    signals.on("revoked", forget);
    signals.on("reconnected", forget);
  }

  async find(digest: Buffer, canWait: boolean): Promise<Found> {
    const known = this.remembered.get(digest.toString("hex"));
    if (known && known.untilMs > this.nowMs()) return known.key;
    return await (canWait ? this.patient : this.prompt).add(digest);
  }

  private async findAll(digests: Buffer[]): Promise<Found[]> {
    const { remembered } = this;
    const beganMs = this.nowMs();
    const texts = digests.map((digest) => digest.toString("hex"));
    const different = new Map(texts.map((text, at) => [text, digests[at] as Buffer]));
    const rows = await findKeys(this.db, [...different.values()]);
    if (remembered.size > MAX_REMEMBERED) remembered.clear();
    for (const key of rows) {
      const untilMs = beganMs + Math.min(GOOD_FOR_MS, key.expires_in_ms ?? Infinity);
      // That it is in use is noted once.
      remembered.set(key.digest.toString("hex"), { key: { ...key, is_unnoticed: false }, untilMs });
    }
    const found = new Map(rows.map((row) => [row.digest.toString("hex"), row]));
    return texts.map((text) => found.get(text));
  }
}
