import { ForgeError } from "./errors.ts";

/** A body as JSON. Throws ForgeError for what JSON has not, and would silently become something else. */
export function jsonText(body: object): string {
  requireJson(body, "", []);
  return JSON.stringify(body);
}

function requireJson(value: unknown, at: string, within: readonly object[]): void {
  const reason = within.includes(value as object) ? "contains itself" : faultOf(value);
  if (reason) throw new ForgeError(`${at || "the body"} ${reason}: it has no form in JSON`);
  if (typeof value !== "object" || value === null || "toJSON" in value) return;
  for (const [name, inner] of Object.entries(value)) {
    const place = Array.isArray(value) ? `${at}[${name}]` : at ? `${at}.${name}` : name;
    requireJson(inner, place, [...within, value]);
  }
}

function faultOf(value: unknown): string | undefined {
  if (typeof value === "bigint") return "is a BigInt";
  if (typeof value === "number" && !Number.isFinite(value)) return `is ${value}`;
  return value instanceof Date && Number.isNaN(value.getTime()) ? "is an invalid date" : undefined;
}
