import { ARTIFACT_KINDS } from "../../../core/artifacts/artifacts";
import { DEPLOYMENT_TYPE } from "../../../core/deployments/workflow";
import { JOB_TYPES } from "../../../core/jobs/job-types";
import { JOB_STATUSES } from "../../../core/jobs/states";
import {
  type JobTypeDeclaration,
  REFERENCE_FIELDS,
  TEMPLATE_NAMES,
} from "../../../core/jobs/types/declaration";
import { PIPELINE_STATUSES } from "../../../core/pipelines/step";
import { SWEEP, TEMPLATES } from "../../../core/pipelines/templates";
import { declarations, GENERATED_NOTICE, mayBeUri, quoted } from "./fields";

const constant = (name: string, values: readonly string[]): string =>
  `export const ${name} = [${values.map(quoted).join(", ")}] as const;`;

/** The dashboard's generated module: job types, and the statuses and kinds that filters offer. */
export const dashboardTypes = (): string => `// ${GENERATED_NOTICE}

${constant("JOB_TYPES", JOB_TYPES)}
export type JobType = (typeof JOB_TYPES)[number];

${constant("JOB_STATUSES", JOB_STATUSES)}
${constant("PIPELINE_STATUSES", PIPELINE_STATUSES)}
${constant("ARTIFACT_KINDS", ARTIFACT_KINDS)}

/** The type whose jobs make deployments. */
export const DEPLOYMENT_TYPE: JobType = ${quoted(DEPLOYMENT_TYPE)};

/** For each entry of a sweep, a \`varied\` job runs, and then a \`judged\` job on its result. */
export const SWEEP: { varied: JobType; judged: JobType } = ${JSON.stringify(SWEEP)};

/** The steps of each template, in their order. */
export const TEMPLATE_STEPS = {
${TEMPLATE_NAMES.map((name) => `  ${quoted(name)}: ${JSON.stringify(TEMPLATES[name])},\n`).join("")}} satisfies Record<string, readonly JobType[]>;

interface JobTypeFacts {
  /** Text above the submission form. */
  about: string;
  /** Description of a pipeline step. */
  step: string;
  /** Example of a gate condition on its result. */
  gate: string;
  /** The type of artifact that a completed job creates. */
  makes: string;
  /** The kind of input that a template fills in from an earlier step. */
  takes: "dataset" | "checkpoint" | null;
  /** Alternative names of payload fields, each with its field name. */
  aliases: Record<string, string>;
  /** Options of \`forge jobs submit\`, by payload field. */
  flags: Record<string, string>;
}

export const JOB_TYPE_FACTS: Record<JobType, JobTypeFacts> = {
${declarations.map((each) => `  ${each.type}: ${JSON.stringify(factsOf(each), null, 2).replaceAll("\n", "\n  ")},\n`).join("")}};
`;

const factsOf = (declaration: JobTypeDeclaration) => {
  const { artifact, client, payload, pipeline } = declaration;
  const { takes } = pipeline;
  const { about, step, gate } = client.dashboard;
  return {
    about,
    step,
    gate,
    makes: artifact.type,
    takes: takes ? REFERENCE_FIELDS[takes].split(" ")[0] : null,
    aliases: payload.aliases ?? {},
    flags: flagsOf(declaration),
  };
};

function flagsOf(declaration: JobTypeDeclaration) {
  const { client, payload } = declaration;
  const flags: Record<string, string> = {};
  for (const { name, field } of client.command.options) {
    flags[field] = `--${name}`;
    if (mayBeUri(declaration, field)) flags.dataset_uri = `--${name}`;
  }
  for (const [alias, field] of Object.entries(payload.aliases ?? {})) {
    if (flags[field] !== undefined) flags[alias] ??= flags[field];
  }
  return flags;
}

/** Styles with the color of each type in charts. */
export const dashboardColors = (): string => `/* ${GENERATED_NOTICE} */

${["light", "dark"].flatMap((theme) => declarations.map((each) => colorOf(each, theme as "light" | "dark"))).join("\n")}`;

function colorOf({ type, client }: JobTypeDeclaration, theme: "light" | "dark"): string {
  const color = client.dashboard.color[theme];
  const scope = theme === "dark" ? ':global([data-theme="dark"]) ' : "";
  return `${scope}.${type} {\n  fill: ${color};\n  background: ${color};\n}\n`;
}
