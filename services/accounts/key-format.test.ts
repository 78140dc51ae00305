import { SCOPES } from "../../core/accounts/permissions";
import { isWellFormedKey, mintKey } from "./key-format";

test.each(SCOPES)("a %s key contains its scope and passes its checksum", (scope) => {
  const key = mintKey(scope);
  expect(key).toMatch(new RegExp(`^forge_${scope}_[A-Za-z0-9_-]{32,}_[0-9a-f]{8}$`));
  expect(isWellFormedKey(key)).toBe(true);
});

test("changing any single character fails the checksum", () => {
  const key = mintKey("user");
  for (let at = 0; at < key.length; at++) {
    const other = key[at] === "0" ? "1" : "0";
    expect(isWellFormedKey(key.slice(0, at) + other + key.slice(at + 1))).toBe(false);
  }
});
