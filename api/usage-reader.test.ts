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

test("an answer passes as it is, and its usage is read, wherever it is cut", async () => {
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

test("of a stream it is in the last event", async () => {
  const events = [
    'data: {"choices":[{"delta":{"content":"hi"}}],"usage":null}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}\n\ndata: [DONE]\n\n',
  ];
  const { tokens } = await read(events, { "content-type": "text/event-stream" });
  expect(tokens).toEqual({ input: 5, output: 1 });
});

test("what a model writes is no usage; nor is what isn't JSON, is compressed, or says nothing", async () => {
  const lie = JSON.stringify({ content: '"completion_tokens": 999' });
  expect((await read([lie])).tokens).toEqual({});
  const usage = '{"completion_tokens": 1}';
  expect((await read([usage], { "content-type": "text/plain" })).tokens).toEqual({});
  expect((await read([usage], { ...JSON_TYPE, "content-encoding": "gzip" })).tokens).toEqual({});
  expect((await read([])).tokens).toEqual({});
  expect((await read(['{"completion_tokens": 99999999999999}'])).tokens).toEqual({});
});
