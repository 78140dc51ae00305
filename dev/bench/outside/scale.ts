/** How much of each is measured. */
export interface Scale {
  rounds: number;
  /** P1: of each round; a bare workflow takes half as long. */
  jobs: number;
  inFlight: number;
  workers: number;
  /** P1: whether job queues are compared as well. */
  queues: boolean;
  /** P2: of each round, ten per second. */
  pacedJobs: number;
  /** P3 and P4: of each round. */
  seconds: number;
  /** P3 and P4: before the rounds, until the server's code is compiled. */
  warmUpSeconds: number;
  fleet: number;
  /** P5: of each round. */
  calls: number;
  /** P8. */
  countedJobs: number;
  /** P9: of each round. */
  burst: number;
  burstRounds: number;
  starts: number;
}

export const FULL: Scale = {
  rounds: 5,
  jobs: 400,
  inFlight: 50,
  workers: 16,
  queues: true,
  pacedJobs: 100,
  seconds: 4,
  warmUpSeconds: 4,
  fleet: 1_000,
  calls: 200,
  countedJobs: 31,
  burst: 10_000,
  burstRounds: 3,
  starts: 3,
};

/** About a minute: it shows a difference of a half, not of a tenth. Rates are too low: code is still cold. */
export const QUICK: Scale = {
  ...FULL,
  rounds: 2,
  jobs: 40,
  queues: false,
  pacedJobs: 10,
  seconds: 0.5,
  warmUpSeconds: 2,
  // A server registers more than that only slowly.
  fleet: 200,
  calls: 40,
  countedJobs: 7,
  burst: 400,
  burstRounds: 1,
  starts: 1,
};
