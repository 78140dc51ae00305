import { type Behaviour, SimulatedWorker, type SimulationOptions, type Tally } from "./worker";

/** Maximum number of concurrent registrations. */
const AT_ONCE = 50;

/** Simulates thousands of workers in one process. */
export class SimulatedFleet {
  readonly tally: Tally = { dispatched: 0, accepted: 0, refused: 0, cancelled: 0, crashes: 0 };
  readonly workers: SimulatedWorker[];

  /** @param mix how many workers of each behaviour. */
  constructor(mix: Partial<Record<Behaviour, number>>, options: SimulationOptions) {
    this.workers = Object.entries(mix).flatMap(([behaviour, count]) =>
      Array.from({ length: count }, (_, n) => {
        const id = `sim-${behaviour}-${n}`;
        return new SimulatedWorker(id, behaviour as Behaviour, options, this.tally);
      }),
    );
  }

  async start(): Promise<void> {
    for (let at = 0; at < this.workers.length; at += AT_ONCE) {
      await Promise.all(this.workers.slice(at, at + AT_ONCE).map((worker) => worker.start()));
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
  }
}
