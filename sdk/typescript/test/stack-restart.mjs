// Waits for a job and follows its log while the server restarts. test/e2e/sdk-typescript.test.ts
// runs this file.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { Forge } from "@forge/sdk";

const client = new Forge();
const job = await client.evaluate({ model_id: "ckpt_1", resources: { tags: ["sees-restart"] } });
const waiting = job.wait({ timeout: 60 });
const lines = [];
for await (const line of job.logs({ follow: true })) {
  lines.push(line);
  await writeFile("has-read", line);
}
assert.deepEqual(lines, ["first", "secönd", "last, without an end"]);
assert.equal((await waiting).status, "completed");
console.log("all right");
