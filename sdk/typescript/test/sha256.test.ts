import { createHash } from "node:crypto";
import fc from "fast-check";
import { JsSha256 } from "../src/platform/sha256.ts";

test("SHA-256 in JavaScript matches Node's, for any chunks", () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });
  fc.assert(
    fc.property(pieces, (given) => {
      const ours = new JsSha256();
      const theirs = createHash("sha256");
      for (const piece of given) {
        ours.update(piece);
        theirs.update(piece);
      }
      return ours.hex() === theirs.digest("hex");
    }),
  );
});

test("lengths around block boundaries", () => {
  for (let length = 0; length < 200; length++) {
    const bytes = new Uint8Array(length).fill(length);
    const hash = new JsSha256();
    hash.update(bytes);
    expect(hash.hex()).toBe(createHash("sha256").update(bytes).digest("hex"));
  }
});
