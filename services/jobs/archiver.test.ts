import { createLogger } from "../../platform/logger";
import type { Context } from "../context";
import { Archiver } from "./archiver";

/** Runs the archiver's loop once. */
class OneRun extends Archiver {
  readonly now = (): Promise<void> => this.run();
}

/**
 * Runs the archiver once over jobs with these ids. Postgres refuses every statement that contains
 * a job of `refused`. Returns the ids in each statement.
 */
async function archive(jobIds: string[], refused: string[]): Promise<string[][]> {
  const statements: string[][] = [];
  const query = async ({ values }: { values: [string[]] }): Promise<unknown> => {
    const [ids] = values;
    statements.push(ids);
    if (statements.length > 20)
      throw Object.assign(new Error("ended by the test"), { code: "57P01" });
    if (ids.length === 0 || ids.some((id) => refused.includes(id))) {
      throw Object.assign(new Error("permission denied"), { code: "42501" });
    }
    return { rows: [], rowCount: ids.length };
  };
  const ctx = {
    logger: createLogger("silent"),
    config: { sweep: { intervalS: 1 }, jobs: { archiveAfterS: 1 } },
    clockWatch: { transaction: async () => jobIds.map((job_id) => ({ job_id })) },
    pool: { query },
  } as unknown as Context;
  await new OneRun(ctx).now();
  return statements;
}

test("without old jobs, no statement archives anything", async () => {
  expect(await archive([], [])).toEqual([]);
});

test("a job that Postgres refuses does not keep the others from being archived", async () => {
  expect(await archive(["a", "b", "c", "d"], ["c"])).toEqual([
    ["a", "b", "c", "d"],
    ["a", "b"],
    ["c", "d"],
    ["c"],
    ["d"],
  ]);
});
