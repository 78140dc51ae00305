import fc from "fast-check";
import { type ClockLook, stepBetween, unrecordedStep } from "./clock-steps";

const look = (s: number, databaseS = s, recordedS = 0): ClockLook => ({
  runningMs: s * 1000,
  databaseMs: databaseS * 1000,
  recordedMs: recordedS * 1000,
});

test("a clock that is set shows, one that is slewed does not", () => {
  expect(stepBetween(look(100, 5_000), look(102, 5_002.3))).toBe(0);
  expect(stepBetween(look(104, 5_004), look(106, 91_406))).toBe(86_400_000);
  expect(stepBetween(look(104, 91_404), look(106, 5_006))).toBe(-86_400_000);
});

test("a process that stood still sees no step", () => {
  expect(stepBetween(look(100, 5_000), look(4_000, 8_900))).toBe(0);
});

test("what another process recorded is not recorded again, and the rest is", () => {
  expect(unrecordedStep(look(100), look(102, 142, 40))).toBe(0);
  expect(unrecordedStep(look(100), look(102, 142, 10))).toBe(30_000);
  expect(unrecordedStep(look(100), look(102, 142, -60))).toBe(100_000);
});

test("of two processes that disagree neither corrects the other", () => {
  expect(unrecordedStep(look(100), look(102, 102, 3_600))).toBe(0);
});

/** A world with one database, whose clock is set now and then, and processes that look at it. */
class World {
  runningS = 1_000;
  private offsetS = 0;
  private recordedS = 0;
  readonly steps: number[] = [];
  private readonly last: ClockLook[];

  constructor(private readonly processes: number) {
    this.last = Array.from({ length: processes }, () => this.read());
  }

  get clockS(): number {
    return 50_000 + this.runningS + this.offsetS;
  }

  private read(): ClockLook {
    return look(this.runningS, this.clockS, this.recordedS);
  }

  look(process: number): void {
    const before = this.last[process] as ClockLook;
    const byS = unrecordedStep(before, this.read()) / 1000;
    if (byS !== 0) this.steps.push(byS);
    this.recordedS += byS;
    this.last[process] = this.read();
  }

  /** Nobody has noticed it yet. */
  set(byS: number): void {
    this.offsetS += byS;
  }

  pass(seconds: number): void {
    this.runningS += seconds;
    for (let process = 0; process < this.processes; process++) this.look(process);
  }

  /** As a deployment begins or is stopped by this process, which looks before. */
  mark(process: number): { clockS: number; offsetS: number; trueS: number } {
    this.look(process);
    return { clockS: this.clockS, offsetS: this.recordedS, trueS: this.runningS };
  }
}

test("a lifetime is true, whatever steps there were before it, in it and at its ends", () => {
  const process = fc.nat(2);
  const step = fc.record({
    byS: fc.oneof(fc.integer({ min: -60, max: 60 }), fc.constantFrom(86_400, -86_400, 3.5e6)),
    process,
    does: fc.constantFrom("begin" as const, "stop" as const, "nothing" as const),
    passS: fc.double({ min: 0.1, max: 300, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const world = new World(3);
      const live: ReturnType<World["mark"]>[] = [];
      let small = 0;
      const ends: [begin: ReturnType<World["mark"]>, small: number][] = [];
      for (const { byS, process: which, does, passS } of steps) {
        world.set(byS);
        if (Math.abs(byS) <= 5) small += Math.abs(byS);
        if (does === "begin") {
          live.push(world.mark(which));
          ends.push([live.at(-1) as ReturnType<World["mark"]>, small]);
        }
        const stopping = does === "stop" ? ends.pop() : undefined;
        if (stopping) {
          const [begin, smallBefore] = stopping;
          const end = world.mark(which);
          const lived = end.clockS - begin.clockS - (end.offsetS - begin.offsetS);
          const unseen = small - smallBefore + (Math.abs(byS) <= 5 ? Math.abs(byS) : 0);
          expect(Math.abs(lived - (end.trueS - begin.trueS))).toBeLessThanOrEqual(unseen + 0.01);
        }
        world.pass(passS);
      }
      // Each step once, however many processes saw it.
      const seen = steps.map(({ byS }) => byS).filter((byS) => Math.abs(byS) > 5);
      expect(world.steps.map(Math.round)).toEqual(seen);
    }),
  );
});
