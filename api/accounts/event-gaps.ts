/** A transaction that is under way for longer has its events missed. */
const WAIT_MS = 60_000;

/**
 * Which ids of events are missing below the highest one that was read. Ids are given before transactions commit,
 * so a lower one may appear later; one whose transaction was rolled back never does.
 */
export class EventGaps {
  /** By id, since when it is missing. */
  private readonly since = new Map<number, number>();

  /** @param lastId everything up to it is known. */
  constructor(
    public lastId: number,
    private readonly nowMs: () => number,
  ) {}

  /** Events of these ids were read, in any order. */
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

  /** The ids to look for; those that have been missing for too long are given up. */
  missing(): number[] {
    const oldest = this.nowMs() - WAIT_MS;
    for (const [id, since] of this.since) if (since < oldest) this.since.delete(id);
    return [...this.since.keys()];
  }
}
