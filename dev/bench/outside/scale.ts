/** How much of each is measured. */
export interface Scale {
  rounds: number;
  /** P1: of each round; a bare workflow takes half as long. */
  jobs: number;
  inFlight: number;
  workers: number;
  /** P2: of each round, ten per second. */
  pacedJobs: number;
  /** P3 and P4: of each round. */
  seconds: number;
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
  pacedJobs: 100,
  seconds: 4,
  fleet: 1_000,
  calls: 200,
  countedJobs: 31,
  burst: 10_000,
  burstRounds: 3,
  starts: 3,
};

/** About a minute: it shows a difference of a half, not of a tenth. */
export const QUICK: Scale = {
  ...FULL,
  rounds: 3,
  jobs: 50,
  pacedJobs: 15,
  seconds: 1,
  // A server registers more than that only slowly.
  fleet: 200,
  calls: 40,
  countedJobs: 7,
  burst: 400,
  burstRounds: 1,
  starts: 1,
};
