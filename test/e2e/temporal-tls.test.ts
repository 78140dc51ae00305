import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server } from "node:tls";
import { NativeConnection } from "@temporalio/worker";
import { joinSockets } from "../../dev/stack/join-sockets";
import { waitFor } from "../../dev/stack/wait";
import { loadConfig } from "../../platform/config/config";
import { createTemporalClient } from "../../platform/temporal/client";
import { CertificateAuthority } from "../support/certificates";
import { runJob, startServersOnly } from "../support/server-process";
import type { TestStack } from "../support/test-stack";

let folder: string;
let ca: CertificateAuthority;
let place: TestStack;
const ends: (() => void)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "forge-tls-"));
  ca = new CertificateAuthority(folder, "ca");
  place = await startServersOnly();
});

afterAll(async () => {
  await place?.end();
  for (const end of ends) end();
  rmSync(folder, { recursive: true, force: true });
});

const serverOptions = () => {
  const { cert, key } = ca.issue("server", "DNS:temporal.example");
  return { cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(ca.cert) };
};

async function listen(server: Server | Http2SecureServer): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  ends.push(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/**
 * A proxy that terminates TLS and requires a client certificate, in front of the real Temporal
 * server, which has no TLS.
 */
async function mutualTlsProxy(): Promise<string> {
  const target = new URL(`tcp://${place.stack.temporalAddress}`);
  const options = { ...serverOptions(), requestCert: true, ALPNProtocols: ["h2"] };
  const server = createServer({ ...options, rejectUnauthorized: true }, (client) => {
    const upstream = connect(Number(target.port), target.hostname);
    joinSockets(client, upstream);
    ends.push(() => client.destroy());
  });
  server.on("tlsClientError", () => undefined);
  return await listen(server);
}

const logOf = (name: string): string => readFileSync(place.stack.logFile(name), "utf8");

test("a job completes over mTLS; without a client certificate Temporal is unreachable", async () => {
  const { stack, env } = place;
  const client = ca.issue("client", "DNS:forge");
  env.TEMPORAL_ADDRESS = await mutualTlsProxy();
  env.TEMPORAL_TLS_SERVER_CA_CERT_PATH = ca.cert;
  env.TEMPORAL_TLS_SERVER_NAME = "temporal.example";

  // This Temporal worker has no client certificate. It retries for 20 s before it gives up.
  // Meanwhile, the test starts a server, whose own Temporal worker has a certificate, and then runs
  // a job.
  await stack.startTemporalWorker();

  env.TEMPORAL_TLS_CLIENT_CERT_PATH = client.cert;
  env.TEMPORAL_TLS_CLIENT_KEY_PATH = client.key;
  await stack.startServer();
  expect(await runJob(stack, "mtls")).toBe("completed");
  expect(logOf("forge-server")).toContain("Temporal worker runs");

  await waitFor("the refusal in the log", () =>
    logOf("temporal-worker").includes("Temporal worker is waiting"),
  );
  expect(logOf("temporal-worker")).not.toContain("Temporal worker runs");
});

test("a certificate of another authority, or for another name, is refused", async () => {
  const TEMPORAL_ADDRESS = await listen(createSecureServer(serverOptions()));
  for (const env of [
    { TEMPORAL_TLS_SERVER_CA_CERT_PATH: new CertificateAuthority(folder, "other").cert },
    { TEMPORAL_TLS_SERVER_CA_CERT_PATH: ca.cert, TEMPORAL_TLS_SERVER_NAME: "other.example" },
  ]) {
    const { temporal } = loadConfig({ TEMPORAL_ADDRESS, ...env }).config;
    await expect(NativeConnection.connect(temporal.connection)).rejects.toThrow(
      /transport|certificate/i,
    );
    const { connection } = createTemporalClient(temporal);
    const call = connection.withDeadline(Date.now() + 1_500, () =>
      connection.workflowService.getSystemInfo({}),
    );
    await expect(call).rejects.toThrow(/UNAVAILABLE|DEADLINE_EXCEEDED|deadline/i);
    await connection.close();
  }
});

test("the API key is sent with the calls of client and worker, over TLS only", async () => {
  const seen: string[] = [];
  const server = createSecureServer(serverOptions());
  server.on("stream", (stream, headers) => {
    seen.push(`${headers[":path"]} ${headers.authorization}`);
    // gRPC status 16 is UNAUTHENTICATED: neither the client nor the worker's connection retries it.
    stream.respond(
      { ":status": 200, "content-type": "application/grpc", "grpc-status": "16" },
      { endStream: true },
    );
  });
  const keyFile = join(folder, "api-key");
  writeFileSync(keyFile, "key-of-a-test\n");
  const { temporal } = loadConfig({
    TEMPORAL_ADDRESS: await listen(server),
    TEMPORAL_API_KEY_FILE: keyFile,
    TEMPORAL_TLS_SERVER_CA_CERT_PATH: ca.cert,
    TEMPORAL_TLS_SERVER_NAME: "temporal.example",
  }).config;
  const client = createTemporalClient(temporal);
  const call = client.connection.withDeadline(Date.now() + 10_000, () =>
    client.connection.workflowService.describeNamespace({ namespace: "default" }),
  );
  await expect(call).rejects.toThrow(/UNAUTHENTICATED/);
  await client.connection.close();
  const calls = seen.splice(0);
  expect(calls).toContainEqual(expect.stringMatching(/DescribeNamespace Bearer key-of-a-test$/));
  await expect(NativeConnection.connect(temporal.connection)).rejects.toThrow();
  expect(seen[0]).toMatch(/ Bearer key-of-a-test$/);
});
