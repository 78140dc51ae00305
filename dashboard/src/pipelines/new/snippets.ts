import { pythonValue, shellQuoted } from "../../submit/snippets";
import type { TemplateBody } from "./draft";

export interface Snippet {
  id: "curl" | "python";
  title: string;
  code: string;
}

/**
 * The same submission as code. The key is a variable, so that a shared snippet never contains it.
 */
export const snippetsOf = (body: TemplateBody, origin: string): Snippet[] => [
  { id: "curl", title: "curl", code: curl(body, origin) },
  { id: "python", title: "Python", code: python(body, origin) },
];

const curl = (body: TemplateBody, origin: string): string =>
  [
    `curl -sS ${shellQuoted(`${origin}/api/pipelines`)} \\`,
    '  -H "X-Service-Api-Key: $SERVICE_API_KEY" \\',
    "  -H 'Content-Type: application/json' \\",
    `  -d ${shellQuoted(JSON.stringify(body, null, 2))}`,
  ].join("\n");

function python({ template, params = {}, ...rest }: TemplateBody, origin: string): string {
  const steps = Object.entries(params).map(
    ([name, fields]) => `        ${pythonValue(name)}: ${pythonValue(fields)},`,
  );
  const more = Object.entries(rest).map(([name, value]) => `    ${name}=${pythonValue(value)},`);
  return [
    "from forge import Forge",
    "",
    `client = Forge(base_url=${pythonValue(origin)})  # the key: SERVICE_API_KEY`,
    "pipeline = client.pipelines.run(",
    `    ${pythonValue(template)},`,
    ...(steps.length > 0 ? ["    {", ...steps, "    },"] : ["    {},"]),
    ...more,
    ")",
    "print(pipeline.pipeline_id)",
  ].join("\n");
}
