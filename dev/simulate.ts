import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import { SimulatedFleet } from "./simulator/fleet";
import { BEHAVIOURS, type Behaviour } from "./simulator/worker";

/**
 * `npm run simulate`: simulates thousands of workers against the local stack or another control
 * plane.
 */
const program = new Command("simulate")
  .description("Simulates a fleet of well-behaved and faulty workers over HTTP")
  .option("--mix <mix>", `behaviour=count, comma-separated: ${BEHAVIOURS.join(", ")}`, "normal=100")
  .option("--work-ms <ms>", "how long a job takes", "1000")
  .option("--heartbeat-ms <ms>", "interval of heartbeats", "5000")
  .option("--silence-ms <ms>", "how long a zombie is silent", "40000")
  .option("--url <url>", "control plane; default: the local stack's")
  .option("--key <key>", "worker key; default: the local stack's")
  .action(simulate);

interface Options {
  mix: string;
  workMs: string;
  heartbeatMs: string;
  silenceMs: string;
  url?: string;
  key?: string;
}

async function simulate(options: Options): Promise<void> {
  const stack = options.url && options.key ? undefined : readStackFile();
  const fleet = new SimulatedFleet(parseMix(options.mix), {
    apiUrl: options.url ?? stack?.api_url ?? "",
    workerKey: options.key ?? stack?.worker_api_key ?? "",
    heartbeatMs: Number(options.heartbeatMs),
    waitS: 50,
    workMs: Number(options.workMs),
    silenceMs: Number(options.silenceMs),
  });
  let stopped = false;
  process.once("SIGINT", () => {
    stopped = true;
  });
  await fleet.start();
  process.stderr.write(
    `${fleet.workers.length} workers are registered; press Ctrl-C to stop them\n`,
  );
  while (!stopped) {
    await sleep(1_000);
    process.stderr.write(`\r${JSON.stringify(fleet.tally)} `);
  }
  await fleet.stop();
  process.stderr.write("\n");
}

function readStackFile(): { api_url: string; worker_api_key: string } {
  const file = join(process.env.FORGE_HOME ?? ".forge", "stack.json");
  try {
    return JSON.parse(readFileSync(file, "utf8")) as { api_url: string; worker_api_key: string };
  } catch {
    throw new Error(`no local stack is running (${file}); run npm start, or set --url and --key`);
  }
}

function parseMix(text: string): Partial<Record<Behaviour, number>> {
  const pairs = text.split(",").map((part) => {
    const [name, count] = part.trim().split("=");
    const behaviour = BEHAVIOURS.find((known) => known === name);
    if (!behaviour || !/^\d{1,5}$/.test(count ?? "")) {
      throw new Error(`"${part}" is not behaviour=count; behaviours: ${BEHAVIOURS.join(", ")}`);
    }
    return [behaviour, Number(count)];
  });
  return Object.fromEntries(pairs);
}

program.parseAsync().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
