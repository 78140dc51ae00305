import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { Decimal } from "decimal.js";
import type { ApiClient } from "../../dev/api-client";
import { all } from "../../platform/postgres/pool";
import type { Forge } from "./forge";

/** Times in ms. */
export type Times<Name extends string> = Record<Name, number>;

/**
 * The median time of `rounds` runs of each call. The calls alternate, so that other load on the
 * machine slows all of them.
 */
export async function mediansOf<Name extends string>(
  rounds: number,
  calls: Record<Name, () => Promise<unknown>>,
): Promise<Times<Name>> {
  const names = Object.keys(calls) as Name[];
  const times = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    number[]
  >;
  const warmUp = Math.ceil(rounds / 4);
  for (let n = -warmUp; n < rounds; n++) {
    for (const name of names) {
      const began = performance.now();
      await calls[name]();
      if (n >= 0) times[name].push(performance.now() - began);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times[name])])) as Times<Name>;
}

const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** Resident memory of a process, in MB. */
export function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}

/**
 * Reads a CSV download to its end without keeping it in memory. @returns the number of lines, and
 * the sum of the cost column, which is the fourth from the end.
 */
export async function sumCsv(
  api: ApiClient,
  path: string,
  onChunk: () => void = () => undefined,
): Promise<{ lines: number; usd: string }> {
  const { parse } = await import("csv-parse");
  const response = await fetch(`${api.baseUrl}${path}`, {
    headers: { "x-service-api-key": api.key },
  });
  if (!response.ok || !response.body) throw new Error(`${path}: HTTP ${response.status}`);
  const parser = parse({ columns: true });
  const feeding = (async () => {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      onChunk();
      if (!parser.write(chunk)) await new Promise((resolve) => parser.once("drain", resolve));
    }
    parser.end();
  })();
  let [lines, micros] = [0, 0n];
  for await (const { cost_usd: usd } of parser as AsyncIterable<{ cost_usd: string }>) {
    lines++;
    micros += BigInt(new Decimal(usd).times(1_000_000).toFixed());
  }
  await feeding;
  return { lines, usd: new Decimal(micros.toString()).div(1_000_000).toFixed() };
}

/** The sum of a tenant's records, computed line by line, without the stored totals. */
export async function plainSum(
  { ctx }: Forge,
  userId: string,
  month: string,
): Promise<{ records: number; usd: string }> {
  const [sum] = await all<{ records: number; usd: string }>(
    ctx.pool,
    `select count(*) as records, coalesce(sum(total_cost_usd), 0)::text as usd from billing_records
     where user_id = $1 and to_char(created_at at time zone 'UTC', 'YYYY-MM') = $2`,
    [userId, month],
  );
  if (!sum) throw new Error("a sum has one row");
  return { records: sum.records, usd: new Decimal(sum.usd).toFixed() };
}
