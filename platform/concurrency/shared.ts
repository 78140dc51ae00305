/** What several ask for at once is done once, and each of them gets its outcome; asked later, it is done again. */
export class Shared<Result> {
  private readonly underWay = new Map<string, Promise<Result>>();

  do(name: string, work: () => Promise<Result>): Promise<Result> {
    const known = this.underWay.get(name);
    if (known) return known;
    const done = work().finally(() => this.underWay.delete(name));
    this.underWay.set(name, done);
    return done;
  }
}
