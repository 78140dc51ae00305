import { isDatabaseError, isUnavailable } from "./errors";

const failed = (code: string): Error => Object.assign(new Error("failed"), { code });

test("an SQLSTATE is an error of Postgres, and a code of the operating system is not", () => {
  for (const code of ["23505", "0A000", "P0001", "XX000", "57P01"]) {
    expect([code, isDatabaseError(failed(code))]).toEqual([code, true]);
  }
  for (const code of ["EBUSY", "EPERM", "E2BIG", "ENOSPC"]) {
    expect([code, isDatabaseError(failed(code))]).toEqual([code, false]);
  }
});

test("a server that can't be reached is unavailable, and one that refuses a statement is not", () => {
  const down = [failed("ECONNREFUSED"), failed("57P01"), new Error("Query read timeout")];
  for (const error of [...down, new AggregateError(down)]) {
    expect([isUnavailable(error), isDatabaseError(error)]).toEqual([true, true]);
  }
  expect(isUnavailable(failed("23505"))).toBe(false);
});
