import { attachmentOf } from "./attachment";

test.each([
  ["model.pt", `attachment; filename="model.pt"; filename*=UTF-8''model.pt`],
  ["tokenizer/a b.json", `attachment; filename="a_b.json"; filename*=UTF-8''a%20b.json`],
  [`x/"\r\nq".csv`, `attachment; filename="___q_.csv"; filename*=UTF-8''%22%0D%0Aq%22.csv`],
  ["zürich's.csv", `attachment; filename="z_rich_s.csv"; filename*=UTF-8''z%C3%BCrich%27s.csv`],
])("%j is saved under its own name", (path, expected) => {
  expect(attachmentOf(path)).toBe(expected);
});
