import type { JobType } from "../jobs/search";
import type { Body } from "./form-values";

export interface Snippet {
  id: "curl" | "python" | "forge";
  title: string;
  code: string;
}

/** The same submission without the form. The key is a variable: it is never part of a text that people share. */
export function snippetsOf(type: JobType, body: Body, origin: string): Snippet[] {
  return [
    { id: "curl", title: "curl", code: curl(type, body, origin) },
    { id: "python", title: "Python", code: python(type, body, origin) },
    { id: "forge", title: "forge", code: forge(type, body) },
  ];
}

/** In single quotes no character has a meaning for a shell, but the quote itself. */
export const shellQuoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

function curl(type: JobType, body: Body, origin: string): string {
  return [
    `curl -sS ${shellQuoted(`${origin}/api/jobs/${type}`)} \\`,
    '  -H "X-Service-Api-Key: $SERVICE_API_KEY" \\',
    "  -H 'Content-Type: application/json' \\",
    `  -d ${shellQuoted(jsonText(body))}`,
  ].join("\n");
}

/** A line for each field; a field's own value in one. */
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

/** A literal of Python. JSON's texts and numbers are Python's, too. */
export function pythonValue(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value as Body);
  return `{${entries.map(([name, each]) => `${JSON.stringify(name)}: ${pythonValue(each)}`).join(", ")}}`;
}

/** Options of `forge jobs submit`, by the API's names; any other field goes by --set. */
const FLAGS: Record<string, string> = {
  domain: "--domain",
  num_samples: "--num-samples",
  task: "--task",
  teacher: "--teacher",
  teacher_model: "--teacher",
  student_model: "--student",
  style: "--style",
  dataset_id: "--dataset",
  dataset_uri: "--dataset",
  model: "--model",
  model_id: "--model",
  epochs: "--epochs",
  checkpoint_id: "--checkpoint",
  benchmark: "--benchmark",
  region: "--region",
  min_replicas: "--min-replicas",
  max_replicas: "--max-replicas",
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

/** Evaluate and deploy know a model by `--checkpoint`. */
const flagOf = (type: JobType, name: string): string | undefined =>
  name === "model_id" && type !== "train" ? "--checkpoint" : FLAGS[name];

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
