import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { shellQuote } from "./session";

test("a shell reads any quoted text as one word, unchanged", () => {
  const texts = ["", "'", "''", "$(id)", "`id`", "a\nb", "\\", '"', "; rm -rf /", "-n", "$HOME"];
  const more = fc
    .sample(fc.string({ unit: "grapheme" }), 50)
    .filter((text) => !text.includes("\0"));
  const all = [...texts, ...more];
  const script = all.map((text) => `printf '%s\\0' ${shellQuote(text)}`).join("\n");
  const output = execFileSync("sh", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
  expect(output).toEqual(all);
});
