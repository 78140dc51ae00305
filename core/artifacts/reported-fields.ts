import type { z } from "zod";
import type { Contradiction } from "./manifest-schema";

const MAX_QUOTED = 1_000;

/**
 * Fields that a worker reports about an artifact. Collects contradictions: reported values that the
 * service finds to be wrong.
 */
export class ReportedFields {
  readonly contradictions: Contradiction[] = [];

  constructor(private readonly reported: Record<string, unknown>) {}

  /** A field that only the worker knows. An invalid value gives null and a contradiction. */
  take<T>(field: string, schema: z.ZodType<T>): T | null {
    const value = this.reported[field];
    if (value === undefined || value === null) return null;
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    this.contradict(field, value, null);
    return null;
  }

  /**
   * Returns the valid entries of an object field. Ignores null entries. Records a contradiction for
   * each invalid entry.
   */
  entries<T>(field: string, schemaOf: (name: string) => z.ZodType<T>): Record<string, T> {
    const object = this.reported[field] ?? {};
    if (typeof object !== "object" || Array.isArray(object)) {
      this.contradict(field, object, null);
      return {};
    }
    return Object.fromEntries(
      Object.entries(object).flatMap(([name, value]) => {
        if (value === null) return [];
        const parsed = schemaOf(name).safeParse(value);
        if (parsed.success) return [[name, parsed.data]];
        this.contradict(`${field}.${name}`, value, null);
        return [];
      }),
    );
  }

  /** A field that the service has measured. A different reported value is a contradiction. */
  preferMeasured<T>(field: string, measured: T, isSame: (value: unknown) => boolean): T {
    const value = this.reported[field];
    if (value !== undefined && value !== null && !isSame(value))
      this.contradict(field, value, measured);
    return measured;
  }

  contradict(field: string, claimed: unknown, measured: unknown): void {
    this.contradictions.push({ field, claimed: quoted(claimed), measured: quoted(measured) });
  }
}

/** The value itself; if it is long, the start of its JSON text. */
function quoted(value: unknown): unknown {
  const text = JSON.stringify(value) ?? "null";
  if (text.length <= MAX_QUOTED) return value;
  // Don't cut a surrogate pair: Postgres can't store half of one.
  return `${text.slice(0, MAX_QUOTED).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
