// Measures the SDK's overhead: compares `status` with the same request by fetch alone.
//
// Alternates: 50 calls by fetch, 50 by the SDK, and so on. Prints the total milliseconds of each as
// JSON. Needs SERVICE_BASE_URL, SERVICE_API_KEY and JOB_ID; the argument is the number of calls.

import { Forge } from "../dist/index.js";

const TURN = 50;
const { SERVICE_BASE_URL, SERVICE_API_KEY, JOB_ID } = process.env;
const calls = Number(process.argv[2]);
const url = `${SERVICE_BASE_URL}/api/jobs/${JOB_ID}`;
const headers = { "X-Service-Api-Key": SERVICE_API_KEY };
const client = new Forge();

const bare = async () => (await fetch(url, { headers })).json();
const bySdk = () => client.status(JOB_ID);

async function turnMs(call, times) {
  const began = performance.now();
  for (let n = 0; n < times; n++) {
    const { job_id } = await call();
    if (job_id !== JOB_ID) throw new Error(`asked for ${JOB_ID}, answered ${job_id}`);
  }
  return performance.now() - began;
}

// Warm-up, so that both are compiled before the measurement.
await turnMs(bare, TURN);
await turnMs(bySdk, TURN);
let bare_ms = 0;
let sdk_ms = 0;
for (let n = 0; n < calls; n += TURN) {
  bare_ms += await turnMs(bare, TURN);
  sdk_ms += await turnMs(bySdk, TURN);
}
process.stdout.write(JSON.stringify({ fetching: { bare_ms, sdk_ms } }));
