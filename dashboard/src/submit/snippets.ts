import { JOB_TYPE_FACTS, type JobType } from "../jobs/declared-types";
import type { Code } from "../ui/code-tabs";
import type { Body } from "./form-values";

/** The submission as code. The code never contains the API key, so it is safe to share. */
export function snippetsOf(type: JobType, body: Body, origin: string): Code[] {
  return [
    { id: "curl", title: "curl", code: curl(`${origin}/api/jobs/${type}`, jsonText(body)) },
    { id: "python", title: "Python", code: python(type, body, origin) },
    { id: "forge", title: "forge", code: forge(type, body) },
  ];
}

/** Quotes a text for a shell if needed. Within single quotes, only the single quote is special. */
const shellQuoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

export const curl = (url: string, json: string): string =>
  [
    `curl -sS ${shellQuoted(url)} \\`,
    '  -H "X-Service-Api-Key: $SERVICE_API_KEY" \\',
    "  -H 'Content-Type: application/json' \\",
    `  -d ${shellQuoted(json)}`,
  ].join("\n");

/** JSON with one line for each field. */
function jsonText(body: Body): string {
  const fields = Object.entries(body).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  return fields.length > 0 ? `{\n${fields.join(",\n")}\n}` : "{}";
}

function python(type: JobType, body: Body, origin: string): string {
  const fields = Object.entries(body).map(([name, value]) => `    ${name}=${pythonValue(value)},`);
  return [
    "from forge import Forge",
    "",
    `client = Forge(base_url=${JSON.stringify(origin)})  # the key: SERVICE_API_KEY`,
    fields.length > 0 ? `job = client.${type}(` : `job = client.${type}()`,
    ...fields,
    ...(fields.length > 0 ? [")"] : []),
    "print(job.wait().result)",
  ].join("\n");
}

/** A Python literal. JSON strings and numbers are also valid in Python. */
export function pythonValue(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value as Body);
  return `{${entries.map(([name, each]) => `${JSON.stringify(name)}: ${pythonValue(each)}`).join(", ")}}`;
}

/** Options of `forge jobs submit` that all job types share, by API field. */
const FLAGS: Record<string, string> = {
  "resources.gpu": "--gpu",
  "resources.gpu_type": "--gpu-type",
  "resources.memory_gb": "--memory-gb",
  "resources.tags": "--worker-tag",
  priority: "--priority",
  tags: "--tag",
  notes: "--notes",
  timeout_s: "--timeout",
  max_attempts: "--max-attempts",
};

const flagOf = (type: JobType, name: string): string | undefined =>
  JOB_TYPE_FACTS[type].flags[name] ?? FLAGS[name];

function forge(type: JobType, body: Body): string {
  const { resources = {}, ...rest } = body;
  const named = Object.entries(resources as Body).map(
    ([name, value]) => [`resources.${name}`, value] as const,
  );
  const options = [...Object.entries(rest), ...named].flatMap(([name, value]) => {
    const flag = flagOf(type, name);
    if (!flag) return [`--set ${shellQuoted(`${name}=${JSON.stringify(value)}`)}`];
    return [value].flat().map((each) => `${flag} ${shellQuoted(String(each))}`);
  });
  return [`forge jobs submit ${type}`, ...options, "--wait"].join(" \\\n  ");
}
