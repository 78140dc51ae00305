import { ansiSpans } from "./ansi";

test("colours and weights become styles, other sequences are left out", () => {
  expect(ansiSpans("plain")).toEqual([{ text: "plain", style: "" }]);
  expect(ansiSpans("\u001b[1;31mred\u001b[0m rest\u001b[2K\u001b[92mgreen")).toEqual([
    { text: "red", style: "red bold" },
    { text: " rest", style: "" },
    { text: "green", style: "green" },
  ]);
});
