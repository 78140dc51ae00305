export type Expiry = "7" | "30" | "90" | "365" | "day" | "never";

export const EXPIRIES: readonly { value: Expiry; text: string }[] = [
  { value: "7", text: "In 7 days" },
  { value: "30", text: "In 30 days" },
  { value: "90", text: "In 90 days" },
  { value: "365", text: "In a year" },
  { value: "day", text: "On a day" },
  { value: "never", text: "Never" },
];

const DAY_MS = 86_400_000;

/** When the key expires. @param day YYYY-MM-DD: the key works until the end of this local day. */
export function expiryDate(expiry: Expiry, day: string): Date | undefined | "invalid" {
  if (expiry === "never") return undefined;
  if (expiry !== "day") return new Date(Date.now() + Number(expiry) * DAY_MS);
  const end = new Date(`${day}T23:59:59`);
  return end.getTime() > Date.now() ? end : "invalid";
}
