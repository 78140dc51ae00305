import { interruptionOf, SessionFailed } from "./interruption";

test.each([
  Object.assign(new Error("ENOENT: no such file, open '/store/x'"), { code: "ENOENT" }),
  new SessionFailed("Out of Memory Error"),
  new Error('IO Error: Could not read from file "/dev/fd/20": Input/output error'),
  new Error("Invalid Error: Resource temporarily unavailable"),
  new Error("Out of Memory Error: Failed to allocate block of 4096 bytes (bad allocation)"),
])("an error of the machine: %s", (error) => {
  const interruption = interruptionOf(error);
  expect(interruption).toEqual(expect.any(String));
  expect(interruption).not.toMatch(/\/(dev|store)/);
});

test.each([
  "Invalid Input Error: Failed to read file: Snappy decompression failure",
  'IO Error: Failed to read Parquet file "/dev/fd/18": root schema element has no children',
  "Invalid Error: TProtocolException: Invalid data",
  'IO Error: Could not read enough bytes from file "/dev/fd/20": attempted to read 9 bytes from location 99',
  "Out of Memory Error: failed to allocate data of size 256.0 MiB (1.0 MiB/244.1 MiB used)",
])("an error of the file: %s", (message) => {
  expect(interruptionOf(new Error(message))).toBeUndefined();
});
