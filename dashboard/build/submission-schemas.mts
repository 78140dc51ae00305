import { readFileSync } from "node:fs";
import type { Plugin } from "vite";

const NAME = "virtual:submission-schemas";
const RESOLVED = `\0${NAME}`;
const PATH = /^\/api\/jobs\/([a-z]+)$/;

interface Schema {
  $ref?: string;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
}

interface Document {
  paths: Record<
    string,
    { post?: { requestBody?: { content: Record<string, { schema: Schema }> } } }
  >;
  components: { schemas: Record<string, Schema> };
}

/**
 * Extracts the schemas of job submissions from the OpenAPI document at build time. The browser does
 * not fetch the document, because it is large. The schemas match the server: dashboard and server
 * are one release, and a test compares the document with the server.
 */
export function submissionSchemas(openapiFile: string): Plugin {
  return {
    name: "forge-submission-schemas",
    resolveId: (id) => (id === NAME ? RESOLVED : undefined),
    load(id) {
      if (id !== RESOLVED) return undefined;
      this.addWatchFile(openapiFile);
      const document = JSON.parse(readFileSync(openapiFile, "utf8")) as Document;
      const { submissions, options } = extract(document);
      return [
        `export const SUBMISSIONS = ${JSON.stringify(submissions)};`,
        `export const OPTIONS = ${JSON.stringify(options)};`,
      ].join("\n");
    },
  };
}

/**
 * Splits the fields of submissions into two groups. `options` has the fields that all job types
 * share. `submissions` has the other fields, by job type and form. A type whose body is an `anyOf`
 * has several forms, for example one with `dataset_id` and one with `dataset_uri`.
 */
function extract(document: Document) {
  const forms = Object.entries(document.paths).flatMap(([path, { post }]) => {
    const type = PATH.exec(path)?.[1];
    const schema = post?.requestBody?.content["application/json"]?.schema;
    return type && schema ? (schema.anyOf ?? [schema]).map((form) => ({ type, form })) : [];
  });
  const [first, ...rest] = forms.map(({ form }) => Object.keys(form.properties ?? {}));
  const shared = (first ?? []).filter((name) => rest.every((names) => names.includes(name)));
  const submissions: Record<string, { required: string[]; fields: Record<string, Schema> }[]> = {};
  for (const { type, form } of forms) {
    const own = Object.entries(form.properties ?? {}).filter(([name]) => !shared.includes(name));
    submissions[type] ??= [];
    submissions[type].push({ required: form.required ?? [], fields: Object.fromEntries(own) });
  }
  const options = Object.fromEntries(
    shared.map((name) => [name, resolved(forms[0]?.form.properties?.[name], document)]),
  );
  return { submissions, options };
}

function resolved(schema: Schema | undefined, { components }: Document): Schema {
  const name = schema?.$ref?.split("/").at(-1);
  return { ...schema, ...(name ? components.schemas[name] : {}) };
}
