import fc from "fast-check";
import { accountedLook, type ClockLook, stepBetween, unrecordedStep } from "./clock-steps";

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

test("small steps add up, a slewed clock doesn't, nor looks that are imprecise", () => {
  const sees = (looks: ClockLook[]): number => {
    let before = look(100);
    for (const now of looks) {
      const step = unrecordedStep(before, now);
      if (step !== 0) return step;
      before = accountedLook(before, now);
    }
    return 0;
  };
  expect(sees([look(102, 105), look(104, 107), look(106, 112)])).toBe(6_000);
  expect(sees([look(102, 99), look(104, 101), look(106, 100)])).toBe(-6_000);
  const many = Array.from({ length: 100 }, (_, n) => 102 + 2 * n);
  expect(sees(many.map((s) => look(s, s + (s - 100) * 0.04)))).toBe(0);
  expect(sees(many.map((s, n) => look(s, s + (n % 2) * 2)))).toBe(0);
});

test("of two processes that disagree neither corrects the other", () => {
  expect(unrecordedStep(look(100), look(102, 102, 3_600))).toBe(0);
});

/** Steps that add up to no more are not recorded. */
const UNSEEN_S = 5;

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
    this.last[process] = accountedLook(before, this.read());
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
          // At each end, what is too small to be recorded yet.
          expect(Math.abs(lived - (end.trueS - begin.trueS))).toBeLessThan(2 * UNSEEN_S + 0.2);
        }
        world.pass(passS);
      }
      // Each step once, however many processes saw it.
      const sum = (all: number[]): number => all.reduce((before, byS) => before + byS, 0);
      const unseen = sum(steps.map(({ byS }) => byS)) - sum(world.steps);
      expect(Math.abs(unseen)).toBeLessThan(UNSEEN_S + 0.1);
      expect(world.steps.length).toBeLessThanOrEqual(steps.length);
    }),
  );
});
