import { z } from "zod";
import type { ArtifactType } from "./artifact-form";
import { MANIFEST_SCHEMAS } from "./manifest-schema";

/** The file name under which a type's schema is published. */
export const manifestSchemaName = (type: ArtifactType): string => `manifest-${type}.schema.json`;

/** JSON Schema (2020-12). It allows unknown fields, because later versions may add some. */
export const manifestJsonSchema = (type: ArtifactType): unknown =>
  z.toJSONSchema(MANIFEST_SCHEMAS[type], { io: "input" });
