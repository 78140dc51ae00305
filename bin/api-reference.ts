import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ARTIFACT_TYPES } from "../core/artifacts/artifact-form";
import { manifestJsonSchema, manifestSchemaName } from "../core/artifacts/manifest-json-schema";
import { once } from "../platform/concurrency/once";
import type { OpenApiDocument } from "../platform/http/openapi";
import type { OpenFiles } from "./http-app";

/**
 * The folder of the package swagger-ui-dist. The server only reads the package's files: an import
 * would keep a second, parsed copy of them in memory.
 */
const LIBRARY = dirname(require.resolve("swagger-ui-dist/package.json"));
const PAGE = join(__dirname, "api-reference");

/** JSON Schemas of the manifests, for clients that validate them. */
function schemaFiles(): OpenFiles {
  return Object.fromEntries(
    ARTIFACT_TYPES.map((type) => [
      `/docs/schemas/${manifestSchemaName(type)}`,
      {
        contentType: "application/schema+json; charset=utf-8",
        content: once(() => JSON.stringify(manifestJsonSchema(type))),
      },
    ]),
  );
}

/** The API reference under /docs/. It loads nothing from other servers. */
export function apiReference(document: () => OpenApiDocument): OpenFiles {
  const file = (contentType: string, folder: string, name: string) => ({
    contentType: `${contentType}; charset=utf-8`,
    content: once(() => readFileSync(join(folder, name))),
  });
  const page = file("text/html", PAGE, "index.html");
  return {
    "/docs/": page,
    "/docs/index.html": page,
    "/docs/reference.css": file("text/css", PAGE, "reference.css"),
    "/docs/reference.js": file("text/javascript", PAGE, "reference.js"),
    "/docs/swagger-ui.css": file("text/css", LIBRARY, "swagger-ui.css"),
    "/docs/swagger-ui-bundle.js": file("text/javascript", LIBRARY, "swagger-ui-bundle.js"),
    "/docs/openapi.json": {
      contentType: "application/json; charset=utf-8",
      content: once(() => JSON.stringify(document())),
    },
    ...schemaFiles(),
  };
}
