import { curl, pythonValue } from "../../submit/snippets";
import type { Code } from "../../ui/code-tabs";
import type { TemplateBody } from "./draft";

/** The submission as code. The code never contains the API key, so it is safe to share. */
export const snippetsOf = (body: TemplateBody, origin: string): Code[] => [
  {
    id: "curl",
    title: "curl",
    code: curl(`${origin}/api/pipelines`, JSON.stringify(body, null, 2)),
  },
  { id: "python", title: "Python", code: python(body, origin) },
];

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
