import type { JobTypeDeclaration } from "../../../core/jobs/types/declaration";
import { typeOf } from "../typescript-types";
import { capital, declarations, fieldOf, GENERATED_NOTICE, parametersOf, quoted } from "./fields";

const paramsName = (type: string): string => `${capital(type)}Params`;

/** Parameter types of the SDK's methods. */
export const sdkParams = (): string => `// ${GENERATED_NOTICE}
import type { SubmissionParams } from "./submission.ts";
${declarations.map(params).join("")}`;

function params(declaration: JobTypeDeclaration): string {
  const fields = parametersOf(declaration).map((name) => {
    const { schema, isRequired } = fieldOf(declaration, name);
    const isGiven =
      schema.default === undefined ? "" : `; ${JSON.stringify(schema.default)} by default`;
    const about = schema.description ? `  /** ${schema.description}${isGiven} */\n` : "";
    const type = typeOf(schema);
    return `${about}  ${name}${isRequired ? `: ${type}` : `?: ${type} | undefined`};\n`;
  });
  return `
/** ${declaration.client.summary} */
export interface ${paramsName(declaration.type)} extends SubmissionParams {
${fields.join("")}}
`;
}

/** The SDK's method for each job type. */
export const sdkMethods = (): string => `// ${GENERATED_NOTICE}
import type { Job } from "./job.ts";
import type {
${declarations.map(({ type }) => `  ${paramsName(type)},\n`).join("")}} from "./job-params.ts";
import type { CreateOptions } from "./options.ts";

/** A method for each job type. */
export abstract class JobTypeMethods {
  protected abstract submitJob(type: string, params: object, options?: CreateOptions): Promise<Job>;
${declarations.map(method).join("")}}
`;

function method(declaration: JobTypeDeclaration): string {
  const { type, client } = declaration;
  const defaults = parametersOf(declaration).flatMap((name) => {
    const given = fieldOf(declaration, name).schema.default;
    return given === undefined ? [] : [`${name}: params.${name} ?? ${JSON.stringify(given)}`];
  });
  const body = defaults.length > 0 ? `{ ...params, ${defaults.join(", ")} }` : "params";
  return `
  /** ${client.summary} */
  async ${type}(params: ${paramsName(type)}, options?: CreateOptions): Promise<Job> {
    return await this.submitJob(${quoted(type)}, ${body}, options);
  }
`;
}
