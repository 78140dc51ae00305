import { Batcher } from "../batcher";
import { Coalesced } from "../coalesce";
import { type AuthenticatingRow, findKeys } from "../database/keys";
import type { Queryable } from "../database/pool";
import type { Signals } from "../signals";

const WINDOW_MS = 100;
const MAX_BATCH = 500;

type Found = AuthenticatingRow | undefined;

/** So long a key that was found opens without another look, where nobody told us that any was revoked. */
const KEPT_MS = 900;
/** Of all tenants together; then all are forgotten. */
const MAX_KEPT = 10_000;

/**
 * Finds keys by their digests. One look-up at a time, so that floods of requests take one connection; requests that
 * nobody waits for are gathered for longer. A key that was found is kept for a moment: one that is revoked is dead in
 * this process at once, in others when they are told, and after a second where that is lost.
 */
export class KeyLookup {
  private readonly prompt: Coalesced<Buffer, Found>;
  private readonly patient: Batcher<Buffer, Found>;
  private kept = new Map<string, { row: AuthenticatingRow; untilMs: number }>();

  constructor(
    private readonly db: Queryable,
    signals: Pick<Signals, "on">,
    private readonly nowMs: () => number,
  ) {
    this.prompt = new Coalesced((digests) => this.findAll(digests), MAX_BATCH);
    this.patient = new Batcher((digests) => this.findAll(digests), WINDOW_MS, MAX_BATCH);
    // A new map: a look-up that is under way, and may have seen the key alive, keeps nothing in it.
    signals.on("revoked", () => {
      this.kept = new Map();
    });
  }

  async find(digest: Buffer, canWait: boolean): Promise<Found> {
    const kept = this.kept.get(digest.toString("hex"));
    if (kept && this.nowMs() < kept.untilMs) return kept.row;
    return await (canWait ? this.patient : this.prompt).add(digest);
  }

  private async findAll(digests: Buffer[]): Promise<Found[]> {
    const { kept } = this;
    const untilMs = this.nowMs() + KEPT_MS;
    const texts = digests.map((digest) => digest.toString("hex"));
    const different = new Map(texts.map((text, at) => [text, digests[at] as Buffer]));
    const rows = await findKeys(this.db, [...different.values()]);
    const found = new Map(rows.map((row) => [row.digest.toString("hex"), row]));
    if (kept.size > MAX_KEPT) kept.clear();
    for (const [text, row] of found) {
      // Its use is noted by the request that looked it up.
      if (row.lasts) kept.set(text, { row: { ...row, is_unnoticed: false }, untilMs });
    }
    return texts.map((text) => found.get(text));
  }
}
