import { z } from "zod";
import type { ArtifactType } from "./artifacts";
import { MANIFEST_SCHEMAS } from "./manifest-schema";

/** The file name under which a type's schema is published. */
export const manifestSchemaName = (type: ArtifactType): string => `manifest-${type}.schema.json`;

/** The JSON Schema (2020-12) of a type's manifest, as a reader should take it: fields may be added. */
export const manifestJsonSchema = (type: ArtifactType): unknown =>
  z.toJSONSchema(MANIFEST_SCHEMAS[type], { io: "input" });
