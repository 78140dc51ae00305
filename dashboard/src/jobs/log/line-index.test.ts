import fc from "fast-check";
import { LineIndex } from "./line-index";
import { searchLines } from "./search-lines";

const encoder = new TextEncoder();

function indexOf(text: string, cutAt: number[] = []): LineIndex {
  const index = new LineIndex(0);
  const bytes = encoder.encode(text);
  const cuts = [...cutAt.map((cut) => cut % (bytes.length + 1)), bytes.length].sort(
    (a, b) => a - b,
  );
  let from = 0;
  for (const to of cuts) {
    index.append(bytes.subarray(from, to));
    from = to;
  }
  return index;
}

/** Splits a text into lines. There is no empty line after a final newline. */
function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

const logs = fc
  .array(fc.constantFrom("a", "Ab", "é", "\n", "\n\n", "🙂", "abc def", " "), { maxLength: 40 })
  .map((parts) => parts.join(""));

test("finds the lines of the text, in whatever pieces it arrives", () => {
  fc.assert(
    fc.property(logs, fc.array(fc.nat(), { maxLength: 5 }), (text, cuts) => {
      const index = indexOf(text, cuts);
      const lines = linesOf(text);
      expect(index.lines).toBe(lines.length);
      expect(lines.map((_, at) => index.line(at))).toEqual(lines);
    }),
  );
});

test("a search finds each line that contains the text, once", () => {
  fc.assert(
    fc.property(logs, fc.constantFrom("a", "B", "é", "ab", "f"), (text, needle) => {
      const expected = linesOf(text).flatMap((line, at) =>
        line.toLowerCase().includes(needle.toLowerCase()) ? [at] : [],
      );
      const index = indexOf(text);
      expect([...searchLines(index, needle).lines]).toEqual(expected);
      expect([...searchLines(index, `/${needle}/i`).lines]).toEqual(expected);
    }),
  );
});

test("a regular expression matches lines without their newlines", () => {
  const index = indexOf("one\n\ntwo\n");
  expect([...searchLines(index, "/^$/").lines]).toEqual([1]);
  expect([...searchLines(index, "/e$/").lines]).toEqual([0]);
  for (const text of ["one\r\ntwo\r\n", "one\r"]) {
    expect([...searchLines(indexOf(text), "/e$/").lines]).toEqual([0]);
  }
});

test("an invalid regular expression is a result, not an exception", () => {
  expect(searchLines(indexOf("a"), "/(/")).toMatchObject({ error: expect.stringContaining("(") });
});

test("a level filters lines, also with a text or a regular expression", () => {
  const index = indexOf("INFO a\nERROR a\nERROR b\n[error] a\nerrors: a\n");
  expect([...searchLines(index, "level:error").lines]).toEqual([1, 2, 3]);
  expect([...searchLines(index, "level:error A").lines]).toEqual([1, 3]);
  expect([...searchLines(index, "level:error /b$/").lines]).toEqual([2]);
});

test("64 MiB are indexed and searched in seconds", () => {
  const line =
    "2026-11-24 12:00:00 INFO step 12345 loss 0.123456 tokens/s 12345 and some more text\n";
  const piece = encoder.encode(line.repeat(Math.ceil(1_048_576 / line.length)));
  const index = new LineIndex(64 * piece.length);
  const before = performance.now();
  for (let n = 0; n < 64; n++) index.append(piece);
  const indexed = performance.now();
  expect(searchLines(index, "nothing of this").lines).toHaveLength(0);
  const searched = performance.now();
  // If the test runs alone, indexing takes a tenth of this limit, and searching takes a tenth too.
  // The limit is that high because other tests may run at the same time.
  expect(indexed - before).toBeLessThan(5_000);
  expect(searched - indexed).toBeLessThan(5_000);
});
