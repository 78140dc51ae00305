/** Waits for completions by id. A completion may arrive before the wait begins. */
export class Completions {
  private readonly waiting = new Map<string, () => void>();
  private readonly early = new Set<string>();

  done(id: string): void {
    const resolve = this.waiting.get(id);
    if (!resolve) {
      this.early.add(id);
      return;
    }
    this.waiting.delete(id);
    resolve();
  }

  async of(id: string): Promise<void> {
    if (this.early.delete(id)) return;
    await new Promise<void>((resolve) => this.waiting.set(id, resolve));
  }
}
