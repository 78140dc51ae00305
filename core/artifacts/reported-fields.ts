import type { z } from "zod";
import type { Contradiction } from "./manifest-schema";

const MAX_QUOTED = 1_000;

/** What a worker says of an artifact, and how far that goes with what the service knows. */
export class ReportedFields {
  readonly contradictions: Contradiction[] = [];

  constructor(private readonly claimed: Record<string, unknown>) {}

  /** A field that only the worker knows; null where it says nothing, or what the field can't be. */
  take<T>(field: string, schema: z.ZodType<T>): T | null {
    const said = this.claimed[field];
    if (said === undefined || said === null) return null;
    const parsed = schema.safeParse(said);
    if (parsed.success) return parsed.data;
    this.contradict(field, said, null);
    return null;
  }

  /** Of an object, those entries that can be what they are to be; an entry that is null says nothing. */
  entries<T>(field: string, schemaOf: (name: string) => z.ZodType<T>): Record<string, T> {
    const said = this.claimed[field] ?? {};
    if (typeof said !== "object" || Array.isArray(said)) {
      this.contradict(field, said, null);
      return {};
    }
    return Object.fromEntries(
      Object.entries(said).flatMap(([name, value]) => {
        if (value === null) return [];
        const parsed = schemaOf(name).safeParse(value);
        if (parsed.success) return [[name, parsed.data]];
        this.contradict(`${field}.${name}`, value, null);
        return [];
      }),
    );
  }

  /** A field that the service has measured: that counts, and what the worker said beside it is noted. */
  settle<T>(field: string, measured: T, isSame: (said: unknown) => boolean): T {
    const said = this.claimed[field];
    if (said !== undefined && said !== null && !isSame(said))
      this.contradict(field, said, measured);
    return measured;
  }

  contradict(field: string, claimed: unknown, measured: unknown): void {
    this.contradictions.push({ field, claimed: quoted(claimed), measured: quoted(measured) });
  }
}

/** As it is; a long one as the beginning of its text. */
function quoted(value: unknown): unknown {
  const text = JSON.stringify(value) ?? "null";
  if (text.length <= MAX_QUOTED) return value;
  // Not in the middle of a pair: half a character is no text to a database.
  return `${text.slice(0, MAX_QUOTED).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
