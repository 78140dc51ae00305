// Runs scenarios of sdk/contract with the built SDK, like sdk/python/tests/contract_runner.py.
// Stdin: a list of scenarios, each with its address and keys. Stdout: for each scenario, a list
// with the result or error of each step.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Forge, ForgeAPIError, ForgeError, ForgeHTTPError, JobFailedError } from "../dist/index.js";

/**
 * Options of the SDK itself. Their names are converted to camel case. All other options are fields
 * of the API, whose names are not converted.
 */
const OWN_OPTIONS = ["poll_interval", "stop_at_approval"];

const folder = mkdtempSync(join(tmpdir(), "forge-sdk-"));
try {
  const outcomes = [];
  for (const scenario of JSON.parse(await text(process.stdin))) {
    outcomes.push(await played(scenario));
  }
  process.stdout.write(JSON.stringify(outcomes));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function played({ steps, step_url, keys, base_url, limits = {}, ...given }) {
  const variables = { ...given.variables };
  const clients = {};
  const outcomes = [];
  for (const step of steps) {
    const who = step.as ?? "user";
    clients[who] ??= new Forge({
      apiKey: keys[who],
      baseUrl: base_url,
      ...("timeout" in limits ? { timeoutMs: limits.timeout * 1000 } : {}),
    });
    // Tells the test that a step begins. The test assigns the next requests to this step.
    await fetch(step_url, { method: "POST" });
    try {
      const result = await called(clients[who], filledIn(step, variables));
      outcomes.push({ result });
      for (const [name, path] of Object.entries(step.keep ?? {})) {
        variables[name] = path.split(".").reduce((inner, each) => inner?.[each], result);
      }
    } catch (error) {
      outcomes.push({ error: described(error) });
    }
  }
  return outcomes;
}

async function called(client, { call, args = [], options = {} }) {
  const names = call.split(".").map(inCamelCase);
  const name = names.pop();
  const owner = names.reduce((inner, each) => inner[each], client);
  return await plain(owner[name](...argumentsOf(args, options)));
}

/** Returns the positional arguments, then the named arguments, then the request options. */
function argumentsOf(args, { idempotency_key, ...options }) {
  const named = Object.entries(options).map(([name, value]) => [
    OWN_OPTIONS.includes(name) ? inCamelCase(name) : name,
    value,
  ]);
  return [
    ...args.map(inFolder),
    ...(named.length > 0 ? [Object.fromEntries(named)] : []),
    ...(idempotency_key === undefined ? [] : [{ idempotencyKey: idempotency_key }]),
  ];
}

function inCamelCase(name) {
  return name.replace(/_(\w)/g, (_whole, letter) => letter.toUpperCase());
}

function inFolder(value) {
  if (value?.$folder) return join(folder, value.$folder);
  if (!value?.$file) return value;
  const path = join(folder, value.$file);
  writeFileSync(path, value.text);
  return path;
}

function filledIn(step, variables) {
  const text = JSON.stringify(step).replace(/\$\{(\w+)\}/g, (_whole, name) => variables[name]);
  return JSON.parse(text);
}

/**
 * Converts a result to JSON values. An async iterable becomes a list. The path of a file in
 * `folder` becomes the file's content.
 */
async function plain(given) {
  if (given?.[Symbol.asyncIterator]) {
    const items = [];
    for await (const each of given) items.push(await plain(each));
    return items;
  }
  const value = await given;
  if (typeof value === "string" && value.startsWith(folder)) {
    return { $file: readFileSync(value, "utf8") };
  }
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}

/** The public properties of an error. */
function described(error) {
  if (!(error instanceof ForgeError)) return { type: "none of Forge's", message: String(error) };
  const report = { type: error.constructor.name, message: error.message };
  if (error instanceof ForgeAPIError) {
    const { status, code, param = null, request_id } = error;
    return { ...report, status, code, param, request_id };
  }
  if (error instanceof ForgeHTTPError) {
    const { status = null, code = null } = error;
    return { ...report, status, code };
  }
  if (error instanceof JobFailedError) return { ...report, job: error.job };
  return report;
}
