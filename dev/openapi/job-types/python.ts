import { DEPLOYMENT_TYPE } from "../../../core/deployments/workflow";
import { JOB_TYPES, typesWhere } from "../../../core/jobs/job-types";
import {
  type CommandOption,
  type JobTypeDeclaration,
  TEMPLATE_NAMES,
} from "../../../core/jobs/types/declaration";
import {
  declarations,
  type Field,
  fieldOf,
  GENERATED_NOTICE,
  indent,
  mayBeUri,
  oneLineOr,
  parametersOf,
  quoted,
  takesUriOnly,
} from "./fields";

/**
 * The output has the format of `ruff format`: a list with a trailing comma has one element per
 * line.
 */

const NOTE = `# ${GENERATED_NOTICE}`;

const tuple = (names: readonly string[]): string =>
  names.length === 1 ? `(${names.map(quoted).join("")},)` : `(${names.map(quoted).join(", ")})`;

const constant = (name: string, names: readonly string[]): string => {
  const lines = names.map((each) => `    ${quoted(each)},\n`).join("");
  return `${name} = ${oneLineOr(tuple(names), `(\n${lines})`, name.length + 3)}`;
};

const JOB_TYPES_LINE = constant("JOB_TYPES", JOB_TYPES);

/** The agent's module of job types. */
export const agentTypes =
  (): string => `"""The job types, and the facts about them that the agent needs."""

${NOTE}

${JOB_TYPES_LINE}
${constant(
  "NEEDS_TORCH",
  typesWhere(({ handler }) => handler.needsTorch),
)}
"""Types whose reference handler needs PyTorch."""
DEPLOYMENT_TYPE = ${quoted(DEPLOYMENT_TYPE)}
"""The type whose handler serves a model until it is stopped."""
`;

export const handlerTypes =
  (): string => `"""The job types; each handler is the module of that name."""

${NOTE}

${JOB_TYPES_LINE}
`;

export const sdkTypes = (): string => `"""The job types, and the templates of pipelines."""

${NOTE}

${JOB_TYPES_LINE}
${constant("TEMPLATES", TEMPLATE_NAMES)}
${constant("URI_ONLY", typesWhere(takesUriOnly))}
"""Types that take a dataset by its URI, and not by its id."""
`;

/** The SDK's method for each job type. */
export const sdkMethods = (): string => `"""A method for each job type (spec.md 4.5)."""

${NOTE}

from __future__ import annotations

from typing import Generic

from typing_extensions import Unpack

from ..operation import M, operation
from ..request import Request
from ..submission import SubmissionOptions
from .submitting import J, Submitting${declarations.some(acceptsIdOrUri) ? ", by_place" : ""}


class JobTypeMethods(Submitting[M, J], Generic[M, J]):
    """Submit jobs."""

${declarations.map(method).join("\n")}`;

function method(declaration: JobTypeDeclaration): string {
  const { type, client } = declaration;
  const { byPlace, byName } = client.parameters;
  const parameter = (name: string): string =>
    `        ${name}: ${parameterType(fieldOf(declaration, name))},\n`;
  const names = parametersOf(declaration);
  const either = acceptsIdOrUri(declaration)
    ? "        dataset_id, dataset_uri = by_place(dataset_id, dataset_uri)\n"
    : "";
  return `    @operation
    def ${type}(
        self,
${byPlace.map(parameter).join("")}${byName.length > 0 ? "        *,\n" : ""}${byName.map(parameter).join("")}        **options: Unpack[SubmissionOptions],
    ) -> Request[J]:
        """${client.summary}"""
${either}        payload = {
${names.map((name) => `            ${quoted(name)}: ${name},\n`).join("")}        }
        return self._submit(${quoted(type)}, payload, options)
`;
}

/**
 * Whether the positional parameter `dataset_id` also accepts a URI. In the specification, some
 * calls pass an id and others a URI.
 */
const acceptsIdOrUri = ({ client }: JobTypeDeclaration): boolean =>
  client.parameters.byPlace.includes("dataset_id") &&
  client.parameters.byName.includes("dataset_uri");

function parameterType({ schema, isRequired }: Field): string {
  const type = pythonType(schema.type);
  if (schema.default !== undefined) return `${type} = ${pythonValue(schema.default)}`;
  return isRequired ? type : `${type} | None = None`;
}

const pythonType = (type: string | string[] | undefined): string => {
  switch (type) {
    case "string":
      return "str";
    case "integer":
      return "int";
    case "number":
      return "float";
    case "boolean":
      return "bool";
    default:
      throw new Error(`a parameter of type ${String(type)} has no Python type here`);
  }
};

const pythonValue = (value: unknown): string =>
  typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);

/** The commands below `forge jobs submit`. */
export const commands = (): string => `"""\`forge jobs submit\`: a command for each job type."""

${NOTE}

from typing import Annotated

import typer

from .submission_options import Payload, submission
from .submit import app, by_id_or_uri, finish

__all__ = ["app"]
${declarations.map(command).join("")}`;

function command(declaration: JobTypeDeclaration): string {
  const { type, client } = declaration;
  const { about, examples, options } = client.command;
  const lines = examples.map((each) => `forge jobs submit ${type} ${each}`).join("\n");
  return `

@submission(app, finish)
def ${type}(
${options.map((option) => indent(`${parameterOf(declaration, option)},\n`, 4)).join("")}) -> Payload:
    """${about}

    \\b
${indent(lines.replaceAll("\\", "\\\\"), 4)}
    """
    return {
${options.map((option) => `        ${entryOf(declaration, option)},\n`).join("")}    }
`;
}

const variable = ({ name }: CommandOption): string => name.replaceAll("-", "_");

function parameterOf(declaration: JobTypeDeclaration, option: CommandOption): string {
  const { schema } = fieldOf(declaration, option.field);
  const least = schema.minimum === undefined ? [] : [`min=${schema.minimum}`];
  const settings = [...(schema.type === "string" ? [] : least), `help=${quoted(option.help)}`];
  const type = `${pythonType(schema.type)} | None`;
  const made = `typer.Option(${settings.join(", ")})`;
  const begin = `${variable(option)}: Annotated[`;
  const short = `${begin}${type}, ${made}] = None`;
  const broken = `${begin}\n    ${type}, ${made}\n] = None`;
  // 5 columns are taken by the indentation and the comma.
  return oneLineOr(short, broken, 5);
}

function entryOf(declaration: JobTypeDeclaration, option: CommandOption): string {
  return mayBeUri(declaration, option.field)
    ? `**by_id_or_uri(${variable(option)})`
    : `${quoted(option.field)}: ${variable(option)}`;
}
