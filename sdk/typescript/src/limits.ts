import { ForgeError } from "./errors.ts";

/** Throws ForgeError, which names the option, for an invalid time. */
export function requirePositive(name: string, value: unknown): void {
  if (typeof value === "number" && value > 0) return;
  throw new ForgeError(`${name} must be more than 0`);
}

/** Throws ForgeError, which names the option, for an invalid count. */
export function requireCount(name: string, value: unknown): void {
  if (typeof value === "number" && value >= 0) return;
  throw new ForgeError(`${name} must not be negative`);
}
