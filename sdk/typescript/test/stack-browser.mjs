// Tests the browser build of `Forge` with a real stack. test/e2e/sdk-typescript.test.ts runs this
// file in Node with the export condition `browser`. The browser build is compiled without Node's
// types, so it can't use Node's API.
const { SERVICE_BASE_URL: baseUrl, SERVICE_API_KEY: apiKey } = process.env;
await fetch("data:,"); // initializes Node's fetch while `process` exists
delete globalThis.process;
const { Forge, ForgeError } = await import("@forge/sdk");

const DATA = '{"question": "1 + 1?", "answer": "2"}\n'.repeat(20_000);

function assert(isSo, what) {
  if (!isSo) throw new Error(what);
}

try {
  new Forge();
  assert(false, "there is no environment in a browser");
} catch (error) {
  assert(error instanceof ForgeError, String(error));
}

const client = new Forge({ baseUrl, apiKey });
const told = [];
const dataset = await client.datasets.upload(new File([DATA], "up.jsonl"), null, {
  onProgress: ({ done_bytes }) => told.push(done_bytes),
});
assert(dataset.num_rows === 20_000 && told.join() === String(DATA.length), told.join());
let text = "";
const decoder = new TextDecoder();
for await (const bytes of client.artifacts.readFile(dataset.dataset_id, "raw.jsonl")) {
  text += decoder.decode(bytes, { stream: true });
}
assert(text === DATA, "another content");
assert((await client.artifacts.verify(dataset.dataset_id)).ok, "not verified");
const refusal = await client.artifacts.pull(dataset.dataset_id, "x").catch((error) => error);
assert(refusal instanceof ForgeError && refusal.message.includes("have no disk"), String(refusal));

const job = await client.audit({ dataset_uri: dataset.dataset_uri });
const statuses = [];
for await (const event of job.events()) statuses.push(event.status);
assert(statuses.at(-1) === "completed", statuses.join());
assert((await job.wait()).result.quality, "no result");
assert((await client.billing.record(job)).total_cost_usd > 0, "no bill");
console.log("all right");
