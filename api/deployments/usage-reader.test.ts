import { text } from "node:stream/consumers";
import { UsageReader } from "./usage-reader";

const JSON_TYPE = { "content-type": "application/json; charset=utf-8" };

async function read(pieces: string[], headers: Record<string, string> = JSON_TYPE) {
  const reader = new UsageReader(headers);
  const passed = text(reader);
  for (const piece of pieces) reader.write(piece);
  reader.end();
  return { passed: await passed, tokens: reader.tokens() };
}

test("passes a response through unchanged and reads its usage, wherever the chunks split", async () => {
  const answer = JSON.stringify({
    choices: [{ message: { content: "x".repeat(10_000) } }],
    usage: { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 },
  });
  for (const at of [1, answer.length - 30, answer.length - 1]) {
    const { passed, tokens } = await read([answer.slice(0, at), answer.slice(at)]);
    expect(passed).toBe(answer);
    expect(tokens).toEqual({ input: 12, output: 34 });
  }
});

test("reads the usage of a stream from its last event", async () => {
  const events = [
    'data: {"choices":[{"delta":{"content":"hi"}}],"usage":null}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}\n\ndata: [DONE]\n\n',
  ];
  const { tokens } = await read(events, { "content-type": "text/event-stream" });
  expect(tokens).toEqual({ input: 5, output: 1 });
});

test("finds no usage in a model's text, non-JSON, compressed or empty bodies, or absurd counts", async () => {
  const modelText = JSON.stringify({ content: '"completion_tokens": 999' });
  expect((await read([modelText])).tokens).toEqual({});
  const usage = '{"completion_tokens": 1}';
  expect((await read([usage], { "content-type": "text/plain" })).tokens).toEqual({});
  expect((await read([usage], { ...JSON_TYPE, "content-encoding": "gzip" })).tokens).toEqual({});
  expect((await read([])).tokens).toEqual({});
  expect((await read(['{"completion_tokens": 99999999999999}'])).tokens).toEqual({});
});
