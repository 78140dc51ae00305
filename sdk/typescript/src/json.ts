import { ForgeError } from "./errors.ts";

/** Encodes a body. Throws ForgeError for NaN, infinity, BigInt, invalid dates and cycles. */
export function jsonText(body: object): string {
  requireJson(body, "", []);
  return JSON.stringify(body);
}

function requireJson(value: unknown, at: string, within: readonly object[]): void {
  const reason = within.includes(value as object) ? "contains itself" : faultOf(value);
  if (reason) throw new ForgeError(`${at || "the body"} ${reason}: JSON can't represent it`);
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
