import fc from "fast-check";
import { type ClockReading, nextBaseline, stepBetween, unrecordedStep } from "./clock-steps";

const reading = (s: number, databaseS = s, recordedS = 0): ClockReading => ({
  runningMs: s * 1000,
  databaseMs: databaseS * 1000,
  recordedMs: recordedS * 1000,
});

test("a set clock is detected, a slewed clock is not", () => {
  expect(stepBetween(reading(100, 5_000), reading(102, 5_002.3))).toBe(0);
  expect(stepBetween(reading(104, 5_004), reading(106, 91_406))).toBe(86_400_000);
  expect(stepBetween(reading(104, 91_404), reading(106, 5_006))).toBe(-86_400_000);
});

test("a process that was suspended sees no step", () => {
  expect(stepBetween(reading(100, 5_000), reading(4_000, 8_900))).toBe(0);
});

test("only the part of a step that no other process recorded is recorded", () => {
  expect(unrecordedStep(reading(100), reading(102, 142, 40))).toBe(0);
  expect(unrecordedStep(reading(100), reading(102, 142, 10))).toBe(30_000);
  expect(unrecordedStep(reading(100), reading(102, 142, -60))).toBe(100_000);
});

test("small steps add up; slewing and imprecise readings do not", () => {
  const stepIn = (readings: ClockReading[]): number => {
    let before = reading(100);
    for (const now of readings) {
      const step = unrecordedStep(before, now);
      if (step !== 0) return step;
      before = nextBaseline(before, now);
    }
    return 0;
  };
  expect(stepIn([reading(102, 105), reading(104, 107), reading(106, 112)])).toBe(6_000);
  expect(stepIn([reading(102, 99), reading(104, 101), reading(106, 100)])).toBe(-6_000);
  const many = Array.from({ length: 100 }, (_, n) => 102 + 2 * n);
  expect(stepIn(many.map((s) => reading(s, s + (s - 100) * 0.04)))).toBe(0);
  expect(stepIn(many.map((s, n) => reading(s, s + (n % 2) * 2)))).toBe(0);
});

test("two processes that disagree do not correct each other", () => {
  expect(unrecordedStep(reading(100), reading(102, 102, 3_600))).toBe(0);
});

/**
 * MIN_STEP_MS in seconds. A clock step up to this size is not recorded by itself. Several such
 * steps are recorded together when they add up to more than this.
 */
const UNSEEN_S = 5;

/** Simulates a database whose clock is set now and then, and several processes that read it. */
class World {
  runningS = 1_000;
  private offsetS = 0;
  private recordedS = 0;
  readonly steps: number[] = [];
  private readonly last: ClockReading[];

  constructor(private readonly processes: number) {
    this.last = Array.from({ length: processes }, () => this.read());
  }

  get clockS(): number {
    return 50_000 + this.runningS + this.offsetS;
  }

  private read(): ClockReading {
    return reading(this.runningS, this.clockS, this.recordedS);
  }

  readBy(process: number): void {
    const before = this.last[process] as ClockReading;
    const byS = unrecordedStep(before, this.read()) / 1000;
    if (byS !== 0) this.steps.push(byS);
    this.recordedS += byS;
    this.last[process] = nextBaseline(before, this.read());
  }

  /** Sets the clock. No process notices it until its next reading. */
  set(byS: number): void {
    this.offsetS += byS;
  }

  pass(seconds: number): void {
    this.runningS += seconds;
    for (let process = 0; process < this.processes; process++) this.readBy(process);
  }

  /**
   * Simulates the start or stop of a deployment: the process reads the clock.
   * @returns the times that Forge stores, and the true time (`trueS`).
   */
  mark(process: number): { clockS: number; offsetS: number; trueS: number } {
    this.readBy(process);
    return { clockS: this.clockS, offsetS: this.recordedS, trueS: this.runningS };
  }
}

test("a measured lifetime is correct for any clock steps before, during and at its ends", () => {
  const process = fc.nat(2);
  const step = fc.record({
    byS: fc.oneof(
      fc.integer({ min: -60, max: 60 }),
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom(86_400, -86_400, 3.5e6),
    ),
    process,
    does: fc.constantFrom("begin" as const, "stop" as const, "nothing" as const),
    passS: fc.double({ min: 0.1, max: 300, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const world = new World(3);
      const live: ReturnType<World["mark"]>[] = [];
      for (const { byS, process: which, does, passS } of steps) {
        world.set(byS);
        if (does === "begin") live.push(world.mark(which));
        const begin = does === "stop" ? live.pop() : undefined;
        if (begin) {
          const end = world.mark(which);
          const lived = end.clockS - begin.clockS - (end.offsetS - begin.offsetS);
          // The start and the stop may each miss a step that is too small to record.
          expect(Math.abs(lived - (end.trueS - begin.trueS))).toBeLessThan(2 * UNSEEN_S + 0.2);
        }
        world.pass(passS);
      }
      // Each step is recorded once, by whichever process sees it first.
      const sum = (all: number[]): number => all.reduce((before, byS) => before + byS, 0);
      const unseen = sum(steps.map(({ byS }) => byS)) - sum(world.steps);
      expect(Math.abs(unseen)).toBeLessThan(UNSEEN_S + 0.1);
      expect(world.steps.length).toBeLessThanOrEqual(steps.length);
    }),
  );
});
