import { z } from "zod";
import { ARTIFACT_TYPES, type ArtifactType } from "./artifacts";
import { MANIFEST_SCHEMAS } from "./manifest-schema";

const manifestSchemaName = (type: ArtifactType): string => `manifest-${type}.schema.json`;

/** The JSON Schema (2020-12) of each type's manifest, by the file name under which it is published. */
export function manifestJsonSchemas(): Record<string, unknown> {
  return Object.fromEntries(
    ARTIFACT_TYPES.map((type) => [
      manifestSchemaName(type),
      // As a reader should take it: fields may be added.
      z.toJSONSchema(MANIFEST_SCHEMAS[type], { io: "input" }),
    ]),
  );
}
