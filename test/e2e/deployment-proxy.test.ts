/**
 * The stable address of a deployed model: what is forwarded, what is not, and how it is streamed.
 */

import {
  type ClientRequest,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
} from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import { type Deployment, deploy, servingWorker } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import type { ModelServer } from "../support/model-server";
import type { ServingWorker } from "../support/serving-worker";
import { createTenant } from "../support/tenants";
import { TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: ServingWorker;
let model: ModelServer;
let deployment: Deployment;
const MAX_BODY = 4 * 1024 * 1024;

beforeAll(async () => {
  forge = await startForge({
    FORGE_PROXY_MAX_BODY_BYTES: String(MAX_BODY),
    FORGE_PROXY_TIMEOUT_S: "2",
  });
  worker = await servingWorker(forge, "box");
  deployment = await deploy(forge.user);
  const [served] = worker.served.values();
  if (!served) throw new Error("no model is served");
  model = served;
});

const byDefault = (): ModelServer["answering"] => (request, response) => {
  request.resume();
  response.end("{}");
};

afterEach(() => {
  model.answering = byDefault();
  model.requests.length = 0;
});

afterAll(async () => {
  await worker?.die();
  await forge?.stop();
});

interface Asked {
  status: number;
  headers: Headers;
  text: string;
}

async function ask(path: string, init: RequestInit & { duplex?: "half" } = {}): Promise<Asked> {
  const response = await fetch(`${forge.stack.apiUrl}${deployment.url}${path}`, {
    redirect: "manual",
    ...init,
    headers: { "x-service-api-key": forge.user.key, ...init.headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const codeOf = ({ text: body }: Asked): string =>
  (JSON.parse(body) as { error: { code: string } }).error.code;

/** Opens a request with `node:http`, so that a test can send and read it piece by piece. */
function open(method: string, path: string, headers: object = {}): ClientRequest {
  return httpRequest(`${forge.stack.apiUrl}${path}`, {
    method,
    headers: { "x-service-api-key": forge.user.key, ...headers },
  });
}

const answerTo = (request: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request.once("response", resolve).once("error", reject);
  });

test("method, path, query, body and status are forwarded; key, cookies and hop-by-hop headers are not", async () => {
  let body = "";
  model.answering = async (request, response) => {
    body = await text(request);
    response.writeHead(418, {
      "content-type": "text/html",
      "set-cookie": "session=1",
      "x-model": "m",
      "access-control-allow-origin": "*",
      "content-security-policy": "none",
      location: "https://elsewhere.example/",
      "keep-alive": "timeout=99",
    });
    response.end("<script>alert(1)</script>");
  };
  const asked = await ask("/chat/completions?x=%2F1&y", {
    method: "POST",
    headers: {
      cookie: "a=b",
      "content-type": "application/json",
      "x-custom": "c",
      "x-forwarded-for": "1.2.3.4",
    },
    body: '{"n": 1, "n": 2}',
  });
  expect(asked).toMatchObject({ status: 418, text: "<script>alert(1)</script>" });
  expect(body).toBe('{"n": 1, "n": 2}');
  const [sent] = model.requests;
  expect(sent).toMatchObject({ method: "POST", url: "/v1/chat/completions?x=%2F1&y" });
  expect(sent?.headers).toMatchObject({
    "x-custom": "c",
    "content-type": "application/json",
    host: new URL(model.url).host,
  });
  for (const name of ["x-service-api-key", "cookie", "x-forwarded-for"]) {
    expect(sent?.headers[name]).toBeUndefined();
  }
  // Forge authenticates to the model with the serving token that the worker got with the job.
  const [job] = worker.jobs;
  expect(job?.serving_token).toMatch(/^forge_model_[0-9a-f]{64}$/);
  expect(sent?.headers.authorization).toBe(`Bearer ${job?.serving_token}`);
  expect(JSON.stringify(sent?.rawHeaders)).not.toContain(forge.user.key);
  for (const name of ["set-cookie", "location", "access-control-allow-origin"]) {
    expect(asked.headers.get(name)).toBeNull();
  }
  expect(asked.headers.get("x-model")).toBe("m");
  expect(asked.headers.get("x-content-type-options")).toBe("nosniff");
  expect(asked.headers.get("content-security-policy")).toContain("sandbox");
});

test("a key sent as a bearer token is not forwarded either", async () => {
  const response = await fetch(`${forge.stack.apiUrl}${deployment.url}/models`, {
    headers: { authorization: `Bearer ${forge.user.key}` },
  });
  expect(response.status).toBe(200);
  const [job] = worker.jobs;
  expect(model.requests[0]?.headers.authorization).toBe(`Bearer ${job?.serving_token}`);
});

test("without the tenant's key, a caller can't use it or learn that it exists", async () => {
  const { user: other } = await createTenant(forge, "stranger");
  const refused = await other.call("GET", `${deployment.url}/models`);
  const never = await other.call("GET", "/api/deployments/dep_never/v1/models");
  expect([refused.status, never.status]).toEqual([404, 404]);
  const keyless = await fetch(`${forge.stack.apiUrl}${deployment.url}/models`);
  expect(keyless.status).toBe(403);
  const bare = await forge.admin.call("GET", `${deployment.url.replace("/api", "")}/models`);
  expect(bare.status).toBe(200);
  expect(model.requests).toHaveLength(1);
});

test("tokens are streamed one by one", async () => {
  let next: (token: string) => void = () => undefined;
  model.answering = (request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    next = (token) => (token === "" ? response.end() : response.write(`data: ${token}\n\n`));
  };
  const request = open("POST", `${deployment.url}/chat/completions`);
  request.end("{}");
  const answer = await answerTo(request);
  expect(answer.headers["content-type"]).toBe("text/event-stream");
  for (const token of ["one", "two", "three"]) {
    const piece = new Promise<Buffer>((resolve) => void answer.once("data", resolve));
    next(token);
    expect((await piece).toString()).toBe(`data: ${token}\n\n`);
  }
  next("");
  await new Promise((resolve) => void answer.once("end", resolve));
});

test("a request body is streamed: its first piece arrives before its last is sent", async () => {
  const arrived: string[] = [];
  model.answering = (request, response) => {
    request.on("data", (piece: Buffer) => arrived.push(piece.toString()));
    request.on("end", () => response.end("done"));
  };
  const request = open("POST", `${deployment.url}/audio`, { "content-type": "audio/wav" });
  request.write("first");
  await waitFor("the first piece", () => arrived.length === 1);
  request.end("last");
  expect(await text(await answerTo(request))).toBe("done");
  expect(arrived.join("")).toBe("firstlast");
  expect(model.requests[0]?.headers["transfer-encoding"]).toBe("chunked");
});

test("a server that does not read slows its client down", async () => {
  let resume: () => void = () => undefined;
  model.answering = (request, response) => {
    request.pause();
    resume = () => {
      request.resume();
      request.on("end", () => response.end("done"));
    };
  };
  const request = open("POST", `${deployment.url}/slow`, { "content-length": MAX_BODY });
  const answer = answerTo(request);
  const piece = Buffer.alloc(64 * 1024);
  let sent = 0;
  const pump = (): void => {
    while (sent < MAX_BODY) {
      sent += piece.length;
      if (!request.write(piece)) {
        request.once("drain", pump);
        return;
      }
    }
    request.end();
  };
  pump();
  await waitFor("the server to get a request", () => model.requests.length === 1);
  resume();
  expect(await text(await answer)).toBe("done");
  expect(sent).toBe(MAX_BODY);
});

test("a client that disconnects ends the request at the model", async () => {
  let gone = false;
  model.answering = (request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
    response.once("close", () => {
      gone = true;
    });
  };
  const request = open("POST", `${deployment.url}/chat/completions`);
  request.end("{}");
  await answerTo(request);
  request.destroy();
  await waitFor("the model to be left", () => gone);

  let left = false;
  model.answering = (asked) => {
    asked.resume();
    asked.socket.once("close", () => {
      left = true;
    });
  };
  const silent = open("POST", `${deployment.url}/chat/completions`);
  silent.on("error", () => undefined);
  silent.end("{}");
  await waitFor("the model to get a request", () => model.requests.length === 2);
  silent.destroy();
  await waitFor("the model to be left before it answered", () => left);
});

test("a body may be large, up to a limit", async () => {
  let received = 0;
  model.answering = (request, response) => {
    request.on("data", (piece: Buffer) => {
      received += piece.length;
    });
    request.on("end", () => response.end("ok"));
  };
  const asked = await ask("/files", { method: "POST", body: Buffer.alloc(MAX_BODY) });
  expect([asked.status, received]).toEqual([200, MAX_BODY]);
  const declared = open("POST", `${deployment.url}/files`, { "content-length": MAX_BODY + 1 });
  declared.flushHeaders();
  expect((await answerTo(declared)).statusCode).toBe(413);
  declared.on("error", () => undefined).destroy();
  // A body without a declared length is sent until the server refuses it.
  const request = open("POST", `${deployment.url}/files`);
  const answer = answerTo(request);
  const objected = answer.then(() => true);
  const piece = Buffer.alloc(256 * 1024);
  for (let isOver = false; !isOver; ) {
    const sent = new Promise<boolean>((resolve) => request.write(piece, () => resolve(false)));
    isOver = await Promise.race([objected, sent]);
  }
  expect((await answer).statusCode).toBe(413);
  request.on("error", () => undefined).destroy();
});

test("a time-out, a broken response and an unavailable server are different errors", async () => {
  model.answering = (request) => void request.resume();
  const late = await ask("/models");
  expect([late.status, codeOf(late)]).toEqual([504, "deployment_timeout"]);
  model.answering = (request) => void request.socket.destroy();
  const broken = await ask("/models");
  expect([broken.status, codeOf(broken)]).toEqual([502, "deployment_failed"]);
});

test.each([
  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
  "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n",
  "no HTTP at all\r\n\r\n",
])("an invalid response is reported as such: %j", async (words) => {
  model.answering = (request) => void request.socket.write(words);
  const asked = await ask("/models");
  expect([asked.status, codeOf(asked)]).toEqual([502, "deployment_failed"]);
});

test("a server that does not read the request times out, too", async () => {
  model.answering = (request) => void request.pause();
  const request = open("POST", `${deployment.url}/files`);
  const answer = answerTo(request);
  const answered = answer.then(() => true);
  const piece = Buffer.alloc(256 * 1024);
  for (let isOver = false, sent = 0; !isOver && sent < MAX_BODY; sent += piece.length) {
    const written = new Promise<boolean>((resolve) => request.write(piece, () => resolve(false)));
    isOver = await Promise.race([answered, written]);
  }
  expect((await answer).statusCode).toBe(504);
  request.on("error", () => undefined).destroy();
});

test.each(["/../health", "/%2e%2e/health", "/a/..%2fb", "/./x"])(
  "no path leaves its root: %s",
  async (path) => {
    const request = open("GET", `${deployment.url}/x`);
    request.path = `${deployment.url}${path}`;
    request.end();
    expect((await answerTo(request)).statusCode).toBe(400);
    expect(model.requests).toEqual([]);
  },
);

test("a redirect is not followed", async () => {
  model.answering = (_request, response) => {
    response.writeHead(307, { location: "/elsewhere" }).end();
  };
  expect((await ask("/models")).status).toBe(307);
  expect(model.requests).toHaveLength(1);
});

describe("addresses", () => {
  const setUrl = async (url: string | null): Promise<void> => {
    await execute(
      forge.ctx.pool,
      "update placements set inference_url = $2 where deployment_id = $1 and state = 'serving'",
      [deployment.deployment_id, url],
    );
  };

  afterEach(() => setUrl(model.url));

  test.each([
    "http://169.254.169.254/latest",
    "http://[fe80::1]:80/v1",
    "http://0.0.0.0:5432/v1",
    "file:///etc/passwd",
    "gopher://127.0.0.1:1/",
    "127.0.0.1:80",
    "http://no-such-host.invalid/v1",
    "http://127.0.0.1:1/v1",
    null,
  ])("%s is not connected to, and the model is unavailable", async (url) => {
    await setUrl(url);
    const asked = await ask("/models");
    expect([asked.status, codeOf(asked)]).toEqual([503, "deployment_unavailable"]);
    expect(asked.headers.get("retry-after")).toBeTruthy();
    // Only the operator's log names the target.
    expect(asked.text).not.toMatch(/169\.254|passwd|5432/);
  });
});

test("an unhealthy server gets no requests", async () => {
  worker.unhealthy.add(deployment.deployment_id);
  await waitFor("it to be refused", async () => (await ask("/models")).status === 503);
  worker.unhealthy.clear();
  await waitFor("it to be well again", async () => (await ask("/models")).status === 200);
});

describe("a worker that reports a server that is not its own", () => {
  let neighbour: Server;
  let asked: string[];

  beforeAll(async () => {
    asked = [];
    neighbour = createServer((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization}`);
      response.end("{}");
    });
    // `neighbour` is another server on the worker's machine. It listens at an address that is not
    // the worker's, but to which the operator allows connections.
    await new Promise<void>((resolve) => neighbour.listen(0, "127.0.0.2", resolve));
  });

  afterAll(async () => {
    await new Promise((resolve) => neighbour.close(resolve));
  });

  async function deployAt(inferenceUrl: string, key: object): Promise<Asked> {
    const { user } = await createTenant(forge, `liar-${asked.length}-${Date.now()}`);
    const made = await user.post<{ key: string }>("/api/auth/api-keys", {
      scope: "worker",
      workers: 1,
      ...key,
    });
    const api = new ApiClient(forge.stack.apiUrl, made.key);
    const liar = new TestWorker(api, `liar-${Date.now()}`);
    await liar.register();
    const { job_id: jobId } = await user.submit("deploy", { checkpoint_id: "ckpt" });
    await liar.complete(await liar.take(), { result: { inference_url: inferenceUrl } });
    const { result } = await untilEnded(user, jobId);
    const path = `/api/deployments/${result?.deployment_id}/v1/models`;
    const response = await fetch(`${forge.stack.apiUrl}${path}`, {
      headers: { "x-service-api-key": user.key },
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text };
  }

  test("gets no requests sent there, and its tenant sees the reason", async () => {
    const { port } = neighbour.address() as AddressInfo;
    const answer = await deployAt(`http://127.0.0.2:${port}/v1`, {});
    expect(answer.status).toBe(503);
    expect(codeOf(answer)).toBe("deployment_unavailable");
    expect(answer.text).toContain("serving_hosts");
    expect(asked).toEqual([]);
  });

  test("unless its key names the host, with that deployment's token", async () => {
    const { port } = neighbour.address() as AddressInfo;
    const key = { serving_hosts: ["127.0.0.2"] };
    expect((await deployAt(`http://127.0.0.2:${port}/v1`, key)).status).toBe(200);
    expect(asked).toEqual([expect.stringMatching(/^\/v1\/models Bearer forge_model_/)]);
  });

  test("nor on its own address at a port that is not for models", async () => {
    const answer = await deployAt("http://127.0.0.1:22/v1", {});
    expect(answer.status).toBe(503);
    expect(answer.text).toContain("FORGE_DEPLOYMENT_PORTS");
  });
});
