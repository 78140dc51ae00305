import { ForgeError } from "./errors.ts";

/** Throws ForgeError if a time is not positive. The error names the option. */
export function requirePositive(name: string, value: unknown): void {
  if (typeof value === "number" && value > 0) return;
  throw new ForgeError(`${name} must be more than 0`);
}

/** Throws ForgeError if a count is negative. The error names the option. */
export function requireCount(name: string, value: unknown): void {
  if (typeof value === "number" && value >= 0) return;
  throw new ForgeError(`${name} must not be negative`);
}
