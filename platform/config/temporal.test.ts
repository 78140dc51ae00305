import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CertificateAuthority } from "../../test/support/certificates";
import { loadConfig } from "./config";

let folder: string;
let ca: CertificateAuthority;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "forge-certificates-"));
  ca = new CertificateAuthority(folder, "ca");
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const connectionOf = (env: NodeJS.ProcessEnv) => loadConfig(env).config.temporal.connection;

test("TLS is off by default, and on when a setting needs it", () => {
  expect(connectionOf({})).toEqual({ address: "127.0.0.1:7233", tls: false });
  expect(connectionOf({ TEMPORAL_TLS: "true" }).tls).toEqual({});
  expect(connectionOf({ TEMPORAL_TLS_SERVER_NAME: "temporal" }).tls).toEqual({
    serverNameOverride: "temporal",
  });
  expect(connectionOf({ TEMPORAL_API_KEY: "key" })).toMatchObject({ apiKey: "key", tls: {} });
});

test("certificates are read from their files", () => {
  const { tls } = connectionOf({
    TEMPORAL_TLS_SERVER_CA_CERT_PATH: ca.cert,
    TEMPORAL_TLS_CLIENT_CERT_PATH: ca.cert,
    TEMPORAL_TLS_CLIENT_KEY_PATH: ca.key,
  });
  const content = expect.any(Buffer);
  expect(tls).toEqual({
    serverRootCACertificate: content,
    clientCertPair: { crt: content, key: content },
  });
});

test.each([
  ["TEMPORAL_TLS_CLIENT_KEY_PATH: TEMPORAL_TLS_CLIENT_CERT_PATH needs it", "CLIENT_CERT_PATH"],
  ["TEMPORAL_TLS_CLIENT_CERT_PATH: TEMPORAL_TLS_CLIENT_KEY_PATH needs it", "CLIENT_KEY_PATH"],
])("half of a client certificate is refused: %s", (message, name) => {
  expect(() => loadConfig({ [`TEMPORAL_TLS_${name}`]: __filename })).toThrow(message);
});

test("an error names a file without a certificate, and a key of another certificate", () => {
  const load = (env: Record<string, string>) => () => loadConfig(env);
  expect(load({ TEMPORAL_TLS_SERVER_CA_CERT_PATH: __filename })).toThrow(
    "TEMPORAL_TLS_SERVER_CA_CERT_PATH: is not a PEM certificate",
  );
  const other = new CertificateAuthority(folder, "other");
  const pair = { TEMPORAL_TLS_CLIENT_CERT_PATH: ca.cert, TEMPORAL_TLS_CLIENT_KEY_PATH: other.key };
  expect(load(pair)).toThrow(
    "TEMPORAL_TLS_CLIENT_CERT_PATH: and TEMPORAL_TLS_CLIENT_KEY_PATH are not a PEM pair",
  );
});

test("an error names an unreadable file, and credentials without TLS", () => {
  expect(() => loadConfig({ TEMPORAL_TLS_SERVER_CA_CERT_PATH: "/no/ca.pem" })).toThrow(
    "TEMPORAL_TLS_SERVER_CA_CERT_PATH: cannot read /no/ca.pem (ENOENT)",
  );
  expect(() => loadConfig({ TEMPORAL_TLS: "false", TEMPORAL_API_KEY: "key" })).toThrow(
    "TEMPORAL_TLS: is false",
  );
});

test.each([
  ["sslmode=verify-fully", "sslmode must be one of"],
  ["sslmode=verify-full&sslrootcert=/no/ca.pem", "sslrootcert: cannot read /no/ca.pem (ENOENT)"],
  [`sslmode=verify-full&sslcert=${__filename}`, "sslcert needs sslkey"],
  [`sslmode=verify-full&sslkey=${__filename}`, "sslkey needs sslcert"],
  [`sslmode=disable&sslrootcert=${__filename}`, "sslmode=disable, but certificates are set"],
])("the database's ?%s is refused, without its password", (query, message) => {
  const load = () => loadConfig({ FORGE_DATABASE_URL: `postgres://forge:word@db/forge?${query}` });
  expect(load).toThrow(`FORGE_DATABASE_URL: ${message}`);
  expect(load).not.toThrow(/:word@/);
});
