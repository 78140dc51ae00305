import { Batcher } from "../batcher";
import { Coalesced } from "../coalesce";
import { type AuthenticatingRow, findKeys } from "../database/keys";
import type { Queryable } from "../database/pool";

const WINDOW_MS = 100;
const MAX_BATCH = 500;

type Found = AuthenticatingRow | undefined;

/**
 * Finds keys by their digests, in the database each time: a key that is revoked is dead at once. One look-up
 * at a time, so that floods of requests take one connection; requests that nobody waits for are gathered
 * for longer.
 */
export class KeyLookup {
  private readonly prompt: Coalesced<Buffer, Found>;
  private readonly patient: Batcher<Buffer, Found>;

  constructor(private readonly db: Queryable) {
    this.prompt = new Coalesced((digests) => this.findAll(digests), MAX_BATCH);
    this.patient = new Batcher((digests) => this.findAll(digests), WINDOW_MS, MAX_BATCH);
  }

  async find(digest: Buffer, canWait: boolean): Promise<Found> {
    return await (canWait ? this.patient : this.prompt).add(digest);
  }

  private async findAll(digests: Buffer[]): Promise<Found[]> {
    const texts = digests.map((digest) => digest.toString("hex"));
    const different = new Map(texts.map((text, at) => [text, digests[at] as Buffer]));
    const rows = await findKeys(this.db, [...different.values()]);
    const found = new Map(rows.map((row) => [row.digest.toString("hex"), row]));
    return texts.map((text) => found.get(text));
  }
}
