import { ForgeHTTPError } from "../src/index.ts";
import { FakeForge, json } from "./fake-forge.ts";

let server: FakeForge;

beforeEach(async () => {
  server = await new FakeForge().start();
});

afterEach(async () => await server.stop());

const failureOf = async (promise: Promise<unknown>): Promise<Error> =>
  await promise.then(
    () => {
      throw new Error("it was to fail");
    },
    (error: Error) => error,
  );

test.each([
  ["HTML", { body: "<html>" }, "not a JSON object"],
  ["a list", json([]), "not a JSON object"],
  ["a redirect", { status: 302, headers: { Location: "http://elsewhere" } }, "redirects are not"],
  ["a list without entries", json({ has_more: false }), "jobs in the response is not a list"],
])("%s is an invalid response", async (_, answer, text) => {
  server.script = () => answer;
  const error = await failureOf(server.client().jobs.list().toArray());
  if (text.startsWith("jobs")) expect(error.message).toContain(text);
  else expect((await failureOf(server.client().service.ping())).message).toContain(text);
  expect(error).toBeInstanceOf(ForgeHTTPError);
});

test.each([{}, { artifacts: null, attempts: null }, { artifacts: [null], attempts: ["x"] }])(
  "%j is an invalid list of a job's artifacts or attempts",
  async (answer) => {
    server.script = () => json(answer);
    const { jobs } = server.client();
    expect(await failureOf(jobs.artifacts("job_1"))).toBeInstanceOf(ForgeHTTPError);
    expect(await failureOf(jobs.attempts("job_1"))).toBeInstanceOf(ForgeHTTPError);
  },
);

test("an invalid job is refused, alone or in a list", async () => {
  const { jobs } = server.client();
  for (const wrong of [{}, { job_id: "job_1" }, { job_id: 7, status: "running" }]) {
    server.script = () => json({ ...wrong, jobs: [wrong] });
    expect(await failureOf(jobs.wait("job_1"))).toBeInstanceOf(ForgeHTTPError);
    expect(await failureOf(jobs.list().toArray())).toBeInstanceOf(ForgeHTTPError);
  }
  server.script = () => json({ jobs: [null] });
  expect(await failureOf(jobs.list().toArray())).toBeInstanceOf(ForgeHTTPError);
});
