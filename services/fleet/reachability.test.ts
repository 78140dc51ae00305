import { Reachability } from "./reachability";

const TIMEOUT = 30_000;
const S = 1_000;

/** A Reachability that recorded a request at each of these seconds. */
function recordedAt(...seconds: number[]): Reachability {
  const network = new Reachability(TIMEOUT);
  for (const second of seconds) network.record(second * S);
  return network;
}

const every = (stepS: number, fromS: number, toS: number): number[] =>
  Array.from({ length: Math.floor((toS - fromS) / stepS) + 1 }, (_, n) => fromS + n * stepS);

test("a worker is silent if others send requests", () => {
  expect(recordedAt(...every(5, 0, 130)).provesSilence(100 * S, 130 * S)).toBe(true);
});

test("if all workers fall silent at once, none is marked dead", () => {
  const network = recordedAt(...every(5, 0, 100));
  for (const now of [130, 200, 399]) expect(network.provesSilence(96 * S, now * S)).toBe(false);
  for (const now of [130, 200, 399]) expect(network.wasReachable(S, now * S)).toBe(false);
});

test.each([10, 16, 20, 29])(
  "with a request every %i s workers can deliver, so deadlines are enforced",
  (stepS) => {
    const network = recordedAt(...every(stepS, 0, 300));
    expect(network.wasReachable(60 * S, 301 * S)).toBe(true);
  },
);

test("after a network outage, workers have time to reconnect", () => {
  const network = recordedAt(...every(5, 0, 100), 160);
  expect(network.provesSilence(96 * S, 161 * S)).toBe(false);
  expect(network.wasReachable(60 * S, 161 * S)).toBe(false);
  network.record(165 * S);
  network.record(175 * S);
  expect(network.provesSilence(96 * S, 175 * S)).toBe(true);
});

test.each([10, 20, 29, 31, 60, 120])(
  "one request every %i s is enough to find that other workers are silent",
  (stepS) => {
    const network = new Reachability(TIMEOUT);
    network.record(0);
    const requests = new Set(every(stepS, stepS, 600));
    const found = every(2, 2, 600).find((now) => {
      for (const each of [now - 1, now]) if (requests.has(each)) network.record(each * S);
      return now >= 30 && network.provesSilence(0, now * S);
    });
    expect(found).toBeLessThanOrEqual(Math.max(30, 2 * stepS) + 17);
  },
);

test("without any request, workers are silent after ten time-outs", () => {
  const network = recordedAt(0);
  expect(network.provesSilence(0, 299 * S)).toBe(false);
  expect(network.provesSilence(0, 300 * S)).toBe(true);
  expect(network.wasReachable(10 * S, 300 * S)).toBe(true);
});
