/**
 * One piece of work at a time, and the groups that wait take turns: whoever brings a hundred pieces holds
 * up another's one by the piece that is under way, and no more.
 */
export class FairTurns {
  /** What starts each piece, by group, in the order in which the groups' turns come. */
  private readonly waiting = new Map<string, (() => void)[]>();
  private isBusy = false;

  /** How many of a group's wait, without the one under way. */
  waitingOf(group: string): number {
    return this.waiting.get(group)?.length ?? 0;
  }

  /** @param signal takes back what has not begun: it rejects with the signal's reason. */
  async take<Result>(
    group: string,
    work: () => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    signal?.throwIfAborted();
    if (this.isBusy) await this.turnOf(group, signal);
    this.isBusy = true;
    try {
      return await work();
    } finally {
      this.isBusy = false;
      this.startNext();
    }
  }

  private turnOf(group: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.keep(
          group,
          (this.waiting.get(group) ?? []).filter((one) => one !== start),
        );
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.keep(group, [...(this.waiting.get(group) ?? []), start]);
    });
  }

  private startNext(): void {
    const [next] = this.waiting;
    if (!next) return;
    const [group, [start, ...rest]] = next;
    // To the end of the row: a Map goes by age of entry.
    this.waiting.delete(group);
    this.keep(group, rest);
    // What comes meanwhile waits its turn, too.
    this.isBusy = true;
    start?.();
  }

  private keep(group: string, pieces: (() => void)[]): void {
    if (pieces.length === 0) this.waiting.delete(group);
    else this.waiting.set(group, pieces);
  }
}
