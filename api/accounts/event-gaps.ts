/**
 * How long the feed keeps querying a missing id, in ms. If a transaction stays open for longer, its
 * events are never delivered.
 */
const WAIT_MS = 60_000;

/**
 * Tracks which event ids are missing below the highest id read. Ids are assigned before
 * transactions commit, so a lower id may appear later. The id of a rolled back transaction never
 * appears.
 */
export class EventGaps {
  /** For each missing id, the time when it was first noticed, in ms. */
  private readonly since = new Map<number, number>();

  /** @param lastId all events up to this id were read. */
  constructor(
    public lastId: number,
    private readonly nowMs: () => number,
  ) {}

  /** Records that the events with these ids were read, in any order. */
  read(ids: number[]): void {
    const sorted = [...ids].sort((a, b) => a - b);
    for (const id of sorted) {
      this.since.delete(id);
      for (let missing = this.lastId + 1; missing < id; missing++) {
        this.since.set(missing, this.nowMs());
      }
      this.lastId = Math.max(this.lastId, id);
    }
  }

  /** The ids to query again. Drops ids that have been missing for longer than WAIT_MS. */
  missing(): number[] {
    const oldest = this.nowMs() - WAIT_MS;
    for (const [id, since] of this.since) if (since < oldest) this.since.delete(id);
    return [...this.since.keys()];
  }
}
