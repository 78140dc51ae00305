// Measures the SDK's overhead: compares the SDK's method `status` with a direct fetch of the same
// URL.
//
// Alternates between 50 direct fetches and 50 SDK calls. Prints the total time of the fetches and
// the total time of the SDK calls as JSON, in milliseconds. Needs SERVICE_BASE_URL, SERVICE_API_KEY
// and JOB_ID. The argument is the number of fetches, and also the number of SDK calls.

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

// Warm-up, so that the code of both functions is compiled before the measurement.
await turnMs(bare, TURN);
await turnMs(bySdk, TURN);
let bare_ms = 0;
let sdk_ms = 0;
for (let n = 0; n < calls; n += TURN) {
  bare_ms += await turnMs(bare, TURN);
  sdk_ms += await turnMs(bySdk, TURN);
}
process.stdout.write(JSON.stringify({ fetching: { bare_ms, sdk_ms } }));
