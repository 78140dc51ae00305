import { cpuOf } from "./cpu";
import { interleaveAll } from "./rounds";
import { type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import { insertQueuedJobs, type QueuedJobs } from "./seeded-rows";
import type { Forge, Stage } from "./stage";

/**
 * Delays the reconciler by a day. Otherwise, it would start workflows for the queued jobs during
 * the measurement.
 */
const NO_RECONCILER = { FORGE_RECONCILE_AFTER_S: "86400" };

const PARTS = ["forge-server", "Postgres", "Temporal"];

const FEW: QueuedJobs = { jobs: 100, tenants: 1, groups: 1 };

/**
 * P11: the CPU time that Forge, Postgres and Temporal together use for one job, while many other
 * jobs are queued. The queued jobs belong to other tenants, and no worker fits them. The peer is a
 * Forge with only 100 queued jobs.
 */
export async function measureGrowth(stage: Stage, scale: Scale): Promise<Row[]> {
  const { generator } = stage;
  const { jobs, inFlight, workers, growthRounds, manyQueued, manyGroups } = scale;
  const variants: [string, QueuedJobs][] = [
    [`${manyQueued.toLocaleString("en")} queued jobs`, { ...FEW, jobs: manyQueued }],
    [
      `queued jobs of ${manyGroups.toLocaleString("en")} tenants`,
      { jobs: manyGroups, tenants: manyGroups, groups: 1 },
    ],
    [
      `queued jobs with ${manyGroups.toLocaleString("en")} different requirements`,
      { jobs: manyGroups, tenants: 1, groups: manyGroups },
    ],
  ];
  const rows: Row[] = [];
  const started: Forge[] = [];
  const startWith = async (queued: QueuedJobs): Promise<Forge> => {
    const forge = await stage.startForge(NO_RECONCILER);
    started.push(forge);
    await insertQueuedJobs(forge.databaseUrl, queued);
    return forge;
  };
  const costOn = async (forge: Forge): Promise<number> => {
    const before = cpuOf(stage, forge);
    await generator.run("runJobs", { ...forge, workers, jobs, inFlight });
    const after = cpuOf(stage, forge);
    const secondsOf = (part: string): number => (after[part] ?? 0) - (before[part] ?? 0);
    return (1000 * PARTS.reduce((sum, part) => sum + secondsOf(part), 0)) / jobs;
  };
  try {
    const few = await startWith(FEW);
    for (const [what, queued] of variants) {
      const many = await startWith(queued);
      const peer = { name: `${FEW.jobs} queued jobs`, measure: () => costOn(few) };
      const [result] = await interleaveAll(growthRounds, () => costOn(many), [peer]);
      await many.stop();
      started.pop();
      if (!result) throw new Error("nothing was measured");
      rows.push(
        resultRow(
          {
            id: "P11",
            what: `CPU per job with ${what}`,
            unit: "ms",
            goal: { of: "ratio", atMost: 1.1 },
          },
          result,
          { generatorShare: generator.takeMaxCpuShare() },
        ),
      );
    }
    return rows;
  } finally {
    for (const forge of started) await forge.stop();
  }
}
