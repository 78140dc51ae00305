import type { z } from "zod";
import type { ArtifactForm } from "../../artifacts/artifact-form";
import type { PriceFormulaName } from "../../billing/price-formulas";
import type { Countable } from "../../billing/usage";

/**
 * Everything that Forge knows about one job type. The server, both SDKs, the `forge` command, the
 * agent and the dashboard read it. Some of them read files that `npm run openapi -- --write`
 * generates from it.
 *
 * To add a type, see docs/extending.md. To avoid import cycles, files in this folder import no file
 * that reads declarations.
 */
export interface JobTypeDeclaration<Type extends string = string> {
  /** The name of the job type in paths, payloads, SDK methods and commands: one lower-case word. */
  type: Type;
  payload: PayloadDeclaration;
  /** Valid request bodies, by the names that the API reference shows. */
  examples: Record<string, Record<string, unknown>>;
  /** What a worker must have to run jobs of this type. The operator's policy may replace it. */
  requirements?: { gpu?: number };
  /** The artifact that a completed job creates. */
  artifact: ArtifactForm;
  /** Result fields that later pipeline steps may refer to. */
  results: Record<string, ReferenceKind>;
  /**
   * True for types that evaluate or serve a checkpoint. Their manifests name the base model and the
   * dataset of the checkpoint.
   */
  describesCheckpoint?: boolean;
  /** The name of the type's price formula in price-formulas.ts. */
  price: PriceFormulaName;
  usage: UsageDeclaration;
  /** Details in billing records of this type: fields that are shown but not priced. */
  details?: readonly DetailName[];
  pipeline: PipelineDeclaration;
  /**
   * The result of a completed job. `artifact`: files and a final bill. `deployment`: a server that
   * is billed until it is stopped; only one job type may declare `deployment`.
   */
  completion: "artifact" | "deployment";
  /** Facts about the reference handler in `compute/`. */
  handler: { needsTorch: boolean };
  client: ClientDeclaration;
}

interface PayloadDeclaration {
  /** Fields of the payload, as it is stored and sent to workers. */
  fields: z.ZodRawShape;
  /** Alternative names of fields, each with its field name. */
  aliases?: Record<string, string>;
  /** The field sets that the OpenAPI document shows. Default: only `fields`. */
  forms?: readonly z.ZodRawShape[];
  /** Fills in fields that depend on others. Called between replacing aliases and validation. */
  complete?(body: Record<string, unknown>, defaults: PayloadDefaults): void;
  /** @throws InvalidRequest for fields that can't be combined. Called after validation. */
  check?(payload: Record<string, unknown>): void;
}

/** Configured defaults for fields that a submission may omit. */
export interface PayloadDefaults {
  /** The default teacher, for submissions that give a domain but no teacher. */
  teacher: string;
}

/**
 * The kind of value that each of these payload fields accepts. In a pipeline, such a field may
 * refer to an earlier step's result only if that result is of the same kind.
 */
export const REFERENCE_FIELDS = {
  dataset_id: "dataset id",
  dataset_uri: "dataset URI",
  checkpoint_id: "checkpoint id",
} as const;

export type ReferenceField = keyof typeof REFERENCE_FIELDS;

/** What a payload field or the result of a pipeline's step contains, such as a dataset id. */
export type ReferenceKind =
  | (typeof REFERENCE_FIELDS)[ReferenceField]
  | "evaluation id"
  | "deployment id";

interface UsageDeclaration {
  /**
   * The units, besides GPU hours, that the usage of these jobs is measured in. If a tenant has no
   * earlier jobs of the type, the cost estimate assumes a default amount of each unit.
   */
  uses: readonly ("tokens" | "rows" | "samples")[];
  /** True if a bill or billing record depends on the number of rows that the job reads. */
  readsRows: boolean;
  /**
   * Computes how many rows a model writes in a job; null: unknown. The cost estimate uses this
   * number. The number also limits how many tokens are billed.
   */
  rowsWritten?(payload: Record<string, unknown>, rowsRead: number | null): number | null;
  /** The usage that the control plane counts itself if the worker does not report it. */
  counts?: Countable;
  /** The numeric payload field that a job's usage is proportional to. */
  growsWith?: string;
}

/** Names of a billing record's details. core/billing/details.ts has a function for each. */
export type DetailName = "teacher_model" | "num_pairs" | "gpu_type" | "num_steps" | "dataset_size";

export const TEMPLATE_NAMES = ["byo-data", "synthetic"] as const;
export type TemplateName = (typeof TEMPLATE_NAMES)[number];

interface PipelineDeclaration {
  /** Templates that include this type as a step. Their steps are in the order of DECLARATIONS. */
  templates: readonly TemplateName[];
  /**
   * The payload field that a template fills in with a reference to an earlier step's result. The
   * template uses the nearest earlier step that has a result of the field's kind.
   */
  takes?: ReferenceField;
  /**
   * The role of this type in a template's sweep. Exactly one type has each role:
   * - `varied`: the sweep has one step of this type for each entry of the request's `sweep`.
   * - `judged`: the sweep has one step of this type for each `varied` step, to evaluate its result.
   * - `chosen`: the sweep has one step of this type. It uses the result of the best `varied` step.
   */
  sweep?: "varied" | "judged" | "chosen";
}

/**
 * Texts and parameters for clients. Only the code generator (`npm run openapi`) reads them. The
 * control plane does not.
 */
interface ClientDeclaration {
  /** One sentence that documents the type's SDK methods. */
  summary: string;
  /** Payload fields that the type's Python method takes: positional, and keyword-only. */
  parameters: { byPlace: readonly string[]; byName: readonly string[] };
  /** The command `forge jobs submit <type>`. */
  command: {
    about: string;
    /** Each entry: the arguments of one command, without `forge jobs submit <type>`. */
    examples: readonly string[];
    options: readonly CommandOption[];
  };
  dashboard: {
    /** Text above the submission form. */
    about: string;
    /** Description of a pipeline step. */
    step: string;
    /** Example of a gate condition on a step's result. */
    gate: string;
    /**
     * Color of the type in the chart of costs per day, which stacks the types. Color-blind readers
     * must be able to tell adjacent colors apart.
     */
    color: { light: string; dark: string };
  };
}

export interface CommandOption {
  /** The option's name without the leading dashes, e.g. `num-samples`. */
  name: string;
  /**
   * The payload field that the option sets. A URI that is given for `dataset_id` sets `dataset_uri`
   * instead, if the type has that field.
   */
  field: string;
  help: string;
}

/** Type-checks a declaration and keeps `type` as a literal type. */
export const define = <const Type extends string>(
  declaration: JobTypeDeclaration<Type>,
): JobTypeDeclaration<Type> => declaration;
