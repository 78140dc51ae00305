import { Reachability } from "./reachability";

const TIMEOUT = 30_000;
const S = 1_000;

/** A Reachability that recorded a request at each of these seconds. */
function recordedAt(...seconds: number[]): Reachability {
  const reachability = new Reachability(TIMEOUT);
  for (const second of seconds) reachability.record(second * S);
  return reachability;
}

const every = (stepS: number, fromS: number, toS: number): number[] =>
  Array.from({ length: Math.floor((toS - fromS) / stepS) + 1 }, (_, n) => fromS + n * stepS);

test("a worker is silent if others send requests", () => {
  expect(recordedAt(...every(5, 0, 130)).isSilent(100 * S, 130 * S)).toBe(true);
});

test("if all workers fall silent at once, none is marked dead", () => {
  const reachability = recordedAt(...every(5, 0, 100));
  for (const now of [130, 200, 399]) expect(reachability.isSilent(96 * S, now * S)).toBe(false);
  for (const now of [130, 200, 399]) expect(reachability.wasReachable(S, now * S)).toBe(false);
});

test.each([10, 16, 20, 29])(
  "with a request every %i s workers can deliver, so deadlines are enforced",
  (stepS) => {
    const reachability = recordedAt(...every(stepS, 0, 300));
    expect(reachability.wasReachable(60 * S, 301 * S)).toBe(true);
  },
);

test("after a network outage, workers have time to reconnect", () => {
  const reachability = recordedAt(...every(5, 0, 100), 160);
  expect(reachability.isSilent(96 * S, 161 * S)).toBe(false);
  expect(reachability.wasReachable(60 * S, 161 * S)).toBe(false);
  reachability.record(165 * S);
  reachability.record(175 * S);
  expect(reachability.isSilent(96 * S, 175 * S)).toBe(true);
});

test.each([10, 20, 29, 31, 60, 120])(
  "one request every %i s is enough to find that other workers are silent",
  (stepS) => {
    const reachability = new Reachability(TIMEOUT);
    reachability.record(0);
    const requests = new Set(every(stepS, stepS, 600));
    const found = every(2, 2, 600).find((now) => {
      for (const each of [now - 1, now]) if (requests.has(each)) reachability.record(each * S);
      return now >= 30 && reachability.isSilent(0, now * S);
    });
    expect(found).toBeLessThanOrEqual(Math.max(30, 2 * stepS) + 17);
  },
);

test("without any request, workers are silent after ten time-outs", () => {
  const reachability = recordedAt(0);
  expect(reachability.isSilent(0, 299 * S)).toBe(false);
  expect(reachability.isSilent(0, 300 * S)).toBe(true);
  expect(reachability.wasReachable(10 * S, 300 * S)).toBe(true);
});
