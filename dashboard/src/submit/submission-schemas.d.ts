/** A virtual module, which build/submission-schemas.mts makes from docs/openapi.json. */
declare module "virtual:submission-schemas" {
  /** The part of JSON Schema that submissions use. */
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

  /**
   * The forms of each job type: the alternative sets of fields that its payload may have, for
   * example with `dataset_id` or `dataset_uri`.
   */
  export const SUBMISSIONS: Record<string, FormSchema[]>;
  /** Options that every submission may have in addition to its payload. */
  export const OPTIONS: Record<string, FieldSchema>;
}
