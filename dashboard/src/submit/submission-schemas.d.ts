/** Made from docs/openapi.json by build/submission-schemas.mts. */
declare module "virtual:submission-schemas" {
  /** Of JSON Schema, what the submissions use. */
  export interface FieldSchema {
    type?: "string" | "integer" | "array" | "object";
    description?: string;
    default?: unknown;
    minimum?: number;
    maximum?: number;
    minLength?: number;
    maxLength?: number;
    maxItems?: number;
    pattern?: string;
    items?: FieldSchema;
    properties?: Record<string, FieldSchema>;
  }

  export interface FormSchema {
    required: string[];
    fields: Record<string, FieldSchema>;
  }

  /** By job type: the forms that its payload may have. */
  export const SUBMISSIONS: Record<string, FormSchema[]>;
  /** What every submission may carry beside its payload. */
  export const OPTIONS: Record<string, FieldSchema>;
}
