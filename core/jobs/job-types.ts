import { DECLARATIONS } from "./types";
import type { JobTypeDeclaration } from "./types/declaration";

export type JobType = (typeof DECLARATIONS)[number]["type"];

/** All job types, in the order of DECLARATIONS. */
export const JOB_TYPES: readonly JobType[] = DECLARATIONS.map(({ type }) => type);

const BY_TYPE = mapByType<JobTypeDeclaration<JobType>>((declaration) => declaration);

export const declarationOf = (type: JobType): JobTypeDeclaration<JobType> => BY_TYPE[type];

export function isJobType(value: string): value is JobType {
  return (JOB_TYPES as readonly string[]).includes(value);
}

/** Builds a record with one value for each job type. */
export function mapByType<T>(
  read: (declaration: JobTypeDeclaration<JobType>) => T,
): Record<JobType, T> {
  return Object.fromEntries(
    DECLARATIONS.map((declaration) => [declaration.type, read(declaration)]),
  ) as Record<JobType, T>;
}

/** The types whose declaration meets a condition. */
export const typesWhere = (
  holds: (declaration: JobTypeDeclaration<JobType>) => boolean,
): JobType[] => DECLARATIONS.filter(holds).map(({ type }) => type);
