/** A billing month, YYYY-MM. Billing months are in UTC, regardless of the reader's time zone. */
const PERIOD = /^[12]\d{3}-(0[1-9]|1[0-2])$/;

export const isPeriod = (text: string): boolean => PERIOD.test(text);

export const periodAt = (ms: number): string => new Date(ms).toISOString().slice(0, 7);

/** Adds months to a period. @param by the number of months; negative goes back. */
export function shiftPeriod(period: string, by: number): string {
  const [year = 0, month = 1] = period.split("-").map(Number);
  return new Date(Date.UTC(year, month - 1 + by, 15)).toISOString().slice(0, 7);
}

const monthFormat = new Intl.DateTimeFormat("en-GB", {
  month: "long",
  year: "numeric",
  timeZone: "UTC",
});

/** For example "November 2026". */
export const periodName = (period: string): string =>
  monthFormat.format(Date.parse(`${period}-15T00:00:00Z`));

/** Every day of the month, as YYYY-MM-DD. */
export function daysOf(period: string): string[] {
  const next = Date.parse(`${shiftPeriod(period, 1)}-01T00:00:00Z`);
  const count = Math.round((next - Date.parse(`${period}-01T00:00:00Z`)) / 86_400_000);
  return Array.from({ length: count }, (_, at) => `${period}-${String(at + 1).padStart(2, "0")}`);
}

const dayFormat = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});

/** For example "Tue 24 Nov". */
export const dayName = (day: string): string =>
  dayFormat.format(Date.parse(`${day}T12:00:00Z`)).replace(",", "");
