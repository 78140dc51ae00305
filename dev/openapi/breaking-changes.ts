import type { OpenApiDocument, Operation } from "../../platform/http/openapi";

type Json = Record<string, unknown>;

/**
 * Finds changes that would break a client of the old document: removed operations, stricter
 * parameters or body fields, and removed response fields. Returns one line per change.
 */
export function findBreakingChanges(old: OpenApiDocument, now: OpenApiDocument): string[] {
  const found: string[] = [];
  for (const [path, operations] of Object.entries(old.paths)) {
    for (const [method, before] of Object.entries(operations)) {
      const after = now.paths[path]?.[method];
      const name = `${method.toUpperCase()} ${path}`;
      if (after) found.push(...compareOperations(name, before, after, old, now));
      else found.push(`${name} was removed`);
    }
  }
  return found;
}

function compareOperations(
  name: string,
  before: Operation,
  after: Operation,
  old: OpenApiDocument,
  now: OpenApiDocument,
): string[] {
  const found: string[] = [];
  const compare = new SchemaComparison(old, now, found);
  if (before.operationId !== after.operationId) {
    found.push(`${name} was renamed from ${before.operationId}`);
  }
  for (const parameter of before.parameters) {
    const same = after.parameters.find((one) => isSame(one, parameter));
    if (!same) found.push(`${name}: parameter ${parameter.name} was removed`);
    else compare.request(`${name}: parameter ${parameter.name}`, parameter.schema, same.schema);
  }
  for (const parameter of after.parameters) {
    const same = before.parameters.find((one) => isSame(one, parameter));
    if (parameter.required && !same?.required) {
      found.push(`${name}: parameter ${parameter.name} is required now`);
    }
  }
  compareContent(before.requestBody, after.requestBody, (type, one, other) => {
    if (!other) found.push(`${name} no longer accepts ${type}`);
    else compare.request(`${name}: body`, one, other);
  });
  if (!before.requestBody && after.requestBody?.required) {
    found.push(`${name}: a body is required now`);
  }
  for (const [status, answer] of Object.entries(before.responses)) {
    if (!status.startsWith("2")) continue;
    const same = after.responses[status];
    if (!same) found.push(`${name} no longer responds with ${status}`);
    compareContent(answer, same, (type, one, other) => {
      if (!other) found.push(`${name}: ${status} is no longer ${type}`);
      else compare.response(`${name}: ${status}`, one, other);
    });
  }
  return found;
}

type Parameter = Operation["parameters"][number];

const isSame = (one: Parameter, other: Parameter): boolean =>
  one.name === other.name && one.in === other.in;

function compareContent(
  before: Json | undefined,
  after: Json | undefined,
  compare: (type: string, before: Json, after: Json | undefined) => void,
): void {
  const contentOf = (part: Json | undefined) => (part?.content ?? {}) as Record<string, Json>;
  for (const [type, { schema }] of Object.entries(contentOf(before))) {
    compare(type, schema as Json, contentOf(after)[type]?.schema as Json | undefined);
  }
}

/** Walks two schemas in parallel and follows their references. */
class SchemaComparison {
  private readonly seen = new Set<string>();

  constructor(
    private readonly old: OpenApiDocument,
    private readonly now: OpenApiDocument,
    private readonly found: string[],
  ) {}

  /** Compares what clients send: everything that was accepted must still be accepted. */
  request(where: string, before: Json, after: Json): void {
    this.walk(where, before, after, (place, one, other) => {
      for (const field of listOf(other.required)) {
        if (!listOf(one.required).includes(field)) this.say(place, `${field} is required now`);
      }
      const [values, otherValues] = [valuesOf(one), valuesOf(other)];
      if (otherValues && !values) {
        this.say(place, `nothing but ${otherValues.join(", ")} is accepted now`);
      }
      for (const value of otherValues ? (values ?? []) : []) {
        if (!otherValues?.includes(value)) this.say(place, `${String(value)} is refused now`);
      }
      for (const [limit, isTighter] of Object.entries(LIMITS)) {
        if (other[limit] !== undefined && isTighter(other[limit], one[limit])) {
          this.say(place, `${limit} is ${String(other[limit])} now`);
        }
      }
    });
  }

  /** Compares what clients read: no field may be missing. */
  response(where: string, before: Json, after: Json): void {
    this.walk(where, before, after, (place, one, other) => {
      for (const field of listOf(one.required)) {
        if (!listOf(other.required).includes(field)) this.say(place, `${field} may be missing now`);
      }
    });
  }

  private walk(
    where: string,
    before: Json,
    after: Json,
    compare: (where: string, before: Json, after: Json) => void,
  ): void {
    const step = `${where}|${JSON.stringify(before.$ref ?? null)}`;
    if (before.$ref && this.seen.has(step)) return;
    this.seen.add(step);
    const [one, other] = [resolve(this.old, before), resolve(this.now, after)];
    const [type, otherType] = [one.type, other.type].map((each) => JSON.stringify(each));
    if (type !== undefined && otherType !== undefined && type !== otherType) {
      this.say(where, `is ${otherType} now, was ${type}`);
    }
    compare(where, one, other);
    const [fields, others] = [recordOf(one.properties), recordOf(other.properties)];
    for (const [name, field] of Object.entries(fields)) {
      const same = others[name];
      if (!same) this.say(where, `${name} was removed`);
      else this.walk(`${where}.${name}`, field, same, compare);
    }
    if (one.items && other.items) {
      this.walk(`${where}[]`, one.items as Json, other.items as Json, compare);
    }
    const [alternatives, otherAlternatives] = [alternativesOf(one), alternativesOf(other)];
    if (otherAlternatives.length < alternatives.length) this.say(where, "has fewer forms");
    const names = otherAlternatives.map((alternative) =>
      constantsOf(resolve(this.now, alternative)),
    );
    alternatives.forEach((alternative, at) => {
      const name = constantsOf(resolve(this.old, alternative));
      // If an alternative has constant fields, such as its job type, find its new version by these
      // fields, because its position may change.
      const same = otherAlternatives[name === "" ? at : names.indexOf(name)];
      if (!same && name !== "") this.say(where, `the form with ${name} is gone`);
      if (same) this.walk(`${where}(${at + 1})`, alternative, same, compare);
    });
  }

  private say(where: string, what: string): void {
    this.found.push(`${where}: ${what}`);
  }
}

/** The only values that a schema accepts. Undefined if it lists none. */
const valuesOf = (schema: Json): unknown[] | undefined =>
  schema.const === undefined ? (schema.enum as unknown[] | undefined) : [schema.const];

const isLess = (now: unknown, was: unknown): boolean =>
  was === undefined || Number(now) < Number(was);
const isMore = (now: unknown, was: unknown): boolean =>
  was === undefined || Number(now) > Number(was);

/** Keywords that restrict values, each with a function that detects a stricter limit. */
const LIMITS: Record<string, (now: unknown, was: unknown) => boolean> = {
  maximum: isLess,
  maxLength: isLess,
  maxItems: isLess,
  exclusiveMaximum: isLess,
  minimum: isMore,
  minLength: isMore,
  minItems: isMore,
  exclusiveMinimum: isMore,
  pattern: (now, was) => now !== was,
};

function resolve(document: OpenApiDocument, schema: Json): Json {
  const name = /^#\/components\/schemas\/(.+)$/.exec(String(schema.$ref ?? ""))?.[1];
  return name ? (document.components.schemas[name] as Json) : schema;
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const recordOf = (value: unknown): Record<string, Json> => (value ?? {}) as Record<string, Json>;

/**
 * The constant fields of one alternative of `anyOf`, as text: `job_type: "audit"`. Empty if there
 * are none.
 */
const constantsOf = (alternative: Json): string =>
  Object.entries(recordOf(alternative.properties))
    .flatMap(([name, field]) =>
      "const" in field ? [`${name}: ${JSON.stringify(field.const)}`] : [],
    )
    .join(", ");

const alternativesOf = (schema: Json): Json[] => listOf(schema.anyOf ?? schema.oneOf) as Json[];
