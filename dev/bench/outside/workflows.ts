import { setTimeout as sleep } from "node:timers/promises";
import { Client, Connection } from "@temporalio/client";
import { BARE_TASK_QUEUE } from "./bare-temporal";

let serial = 0;

async function withClient<T>(address: string, work: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address });
  try {
    return await work(new Client({ connection }));
  } finally {
    await connection.close();
  }
}

/**
 * Runs a bare workflow to its end. Returns the start time of its activity, in milliseconds since
 * 1970.
 */
const execute = (client: Client): Promise<number> =>
  client.workflow.execute<() => Promise<number>>("bareWorkflow", {
    workflowId: `bare:${process.pid}:${serial++}`,
    taskQueue: BARE_TASK_QUEUE,
    args: [],
  });

/** Measures bare workflows per second. When a workflow ends, the next one starts. */
export async function runWorkflows(options: {
  address: string;
  count: number;
  inFlight: number;
}): Promise<number> {
  const { address, count, inFlight } = options;
  return await withClient(address, async (client) => {
    let started = 0;
    const began = performance.now();
    const runInTurn = async (): Promise<void> => {
      while (started++ < count) await execute(client);
    };
    await Promise.all(Array.from({ length: inFlight }, runInTurn));
    return count / ((performance.now() - began) / 1000);
  });
}

/**
 * Measures the time from a workflow's start to its activity's start, in ms. Starts workflows at
 * regular intervals.
 */
export async function paceWorkflows(options: {
  address: string;
  count: number;
  perSecond: number;
}): Promise<number[]> {
  const { address, count, perSecond } = options;
  return await withClient(address, async (client) => {
    const began = performance.now();
    const one = async (_: unknown, n: number): Promise<number> => {
      await sleep(began + (n * 1000) / perSecond - performance.now());
      const at = performance.timeOrigin + performance.now();
      return (await execute(client)) - at;
    };
    return await Promise.all(Array.from({ length: count }, one));
  });
}
