/** The size of each measurement. docs/performance.md lists the measurements P1 to P11. */
export interface Scale {
  rounds: number;
  /** P1 and P11: jobs per round. P1: also the number of bare workflows per round. */
  jobs: number;
  inFlight: number;
  workers: number;
  /** P1: whether the peers include job queues. */
  includesJobQueues: boolean;
  /** P2: jobs per round, ten per second. */
  pacedJobs: number;
  /** P3: number of rounds. */
  requestRounds: number;
  /** P4: number of servers that are measured, one after the other. */
  readServers: number;
  /** P4: number of rounds per server. */
  readRounds: number;
  /** P3 and P4: duration of a round. */
  seconds: number;
  /** P3 and P4: duration of the warm-up, until the server's code is compiled. */
  warmUpSeconds: number;
  fleet: number;
  /** P6: jobs per round, 20 per second. */
  fleetJobs: number;
  /** P6 and P7: number of rounds. */
  fleetRounds: number;
  /** P6 and P7: duration in which CPU time is measured. */
  cpuSeconds: number;
  waitingPolls: number;
  /** P5: calls per round. */
  calls: number;
  /** P8: number of jobs. */
  countedJobs: number;
  /** P9: submissions per round. */
  burst: number;
  burstRounds: number;
  starts: number;
  /** P11: number of queued jobs if they are all of one tenant and have the same requirements. */
  manyQueued: number;
  /** P11: number of queued jobs in two cases: each has its own tenant, or its own requirements. */
  manyGroups: number;
  growthRounds: number;
}

export const FULL: Scale = {
  rounds: 5,
  jobs: 400,
  inFlight: 50,
  workers: 16,
  includesJobQueues: true,
  pacedJobs: 100,
  requestRounds: 7,
  readServers: 3,
  readRounds: 3,
  seconds: 3,
  warmUpSeconds: 4,
  fleet: 1_000,
  calls: 200,
  countedJobs: 31,
  burst: 10_000,
  burstRounds: 5,
  starts: 3,
  fleetJobs: 300,
  fleetRounds: 3,
  cpuSeconds: 15,
  waitingPolls: 5_000,
  manyQueued: 100_000,
  manyGroups: 1_000,
  growthRounds: 5,
};

/**
 * A quick run takes some minutes. It shows differences of 50 %, but not of 10 %. The measured
 * rates are too low, because V8 has not compiled the code yet.
 */
export const QUICK: Scale = {
  ...FULL,
  rounds: 2,
  jobs: 40,
  includesJobQueues: false,
  pacedJobs: 10,
  requestRounds: 2,
  readServers: 1,
  readRounds: 2,
  seconds: 0.5,
  warmUpSeconds: 2,
  // With more workers, the registrations would take long, because a server limits their rate.
  fleet: 200,
  calls: 40,
  countedJobs: 7,
  burst: 400,
  burstRounds: 1,
  starts: 1,
  fleetJobs: 40,
  fleetRounds: 1,
  cpuSeconds: 2,
  waitingPolls: 500,
  manyQueued: 5_000,
  manyGroups: 200,
  growthRounds: 1,
};
