import { Batcher } from "../batcher";
import { type AuthenticatingRow, findKeys } from "../database/keys";
import type { Queryable } from "../database/pool";

const WINDOW_MS = 100;
const MAX_BATCH = 500;

/**
 * Finds keys by their digests, in the database each time: a key that is revoked is dead at once. Only
 * requests that nobody waits for share a look-up with those that come within a moment of them.
 */
export class KeyLookup {
  private readonly shared: Batcher<Buffer, AuthenticatingRow | undefined>;

  constructor(private readonly db: Queryable) {
    this.shared = new Batcher((digests) => this.findAll(digests), WINDOW_MS, MAX_BATCH);
  }

  async find(digest: Buffer, canWait: boolean): Promise<AuthenticatingRow | undefined> {
    if (canWait) return await this.shared.add(digest);
    return (await this.findAll([digest]))[0];
  }

  private async findAll(digests: Buffer[]): Promise<(AuthenticatingRow | undefined)[]> {
    const texts = digests.map((digest) => digest.toString("hex"));
    const different = new Map(texts.map((text, at) => [text, digests[at] as Buffer]));
    const rows = await findKeys(this.db, [...different.values()]);
    const found = new Map(rows.map((row) => [row.digest.toString("hex"), row]));
    return texts.map((text) => found.get(text));
  }
}
