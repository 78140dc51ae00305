import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as overHttp,
} from "node:http";
import { request as overHttps } from "node:https";
import { isIP } from "node:net";
import { Readable, Transform } from "node:stream";
import { ForgeError } from "../../core/errors";
import type { AddressPolicy } from "../net/address-policy";

const CONNECT_TIMEOUT_MS = 5_000;

/** No connection came about, so that nothing was asked: another server may be. */
export class NotReached extends Error {
  override readonly name = "NotReached";
}

export interface Forwarding {
  method: string;
  headers: IncomingHttpHeaders;
  /** As it came: it is read only once a server listens. */
  body: unknown;
  maxBodyBytes: number;
  /** Longest that nothing passes, either way. */
  timeoutMs: number;
  addresses: AddressPolicy;
  /** What the server asks for; the caller's own credentials are not passed on. */
  token: string | null;
  requestId: string;
  /** Nobody waits for the answer any more. */
  signal: AbortSignal;
}

/**
 * Sends a request on, and returns the answer when its headers are there; both bodies stream. Every
 * connection is one of its own: what a kept one that the server has closed leaves open, whether the
 * request was served, must not be asked of a model.
 *
 * @throws NotReached where another server may be tried.
 */
export async function forward(target: URL, given: Forwarding): Promise<IncomingMessage> {
  const { addresses, method, signal } = given;
  const host = target.hostname.replace(/^\[|\]$/g, "");
  // An address is connected to as it stands, without any look-up.
  if (isIP(host) !== 0 && !addresses.allows(host)) {
    throw new NotReached(`the operator does not allow connections to ${host}`);
  }
  const send = target.protocol === "https:" ? overHttps : overHttp;
  const outgoing = send(target, {
    method,
    headers: {
      ...requestHeaders(given),
      "x-request-id": given.requestId,
      ...(given.token === null ? {} : { authorization: `Bearer ${given.token}` }),
    },
    lookup: addresses.lookup,
    agent: false,
  });
  const hangUp = (): void => {
    // A server that stops lets its answers end, for a while.
    if (signal.reason !== "closing") outgoing.destroy(new Error("nobody waits for it"));
  };
  signal.addEventListener("abort", hangUp);
  outgoing.once("close", () => signal.removeEventListener("abort", hangUp));
  // Whatever else breaks after the answer is seen on the answer itself.
  outgoing.on("error", () => undefined);
  await connected(outgoing, target.protocol === "https:" ? "secureConnect" : "connect");
  if (signal.aborted) hangUp();
  return await answered(outgoing, given);
}

function connected(outgoing: ClientRequest, event: "connect" | "secureConnect"): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      clearTimeout(timer);
      outgoing.destroy();
      reject(new NotReached(error.message));
    };
    const timer = setTimeout(() => fail(new Error("no connection in time")), CONNECT_TIMEOUT_MS);
    outgoing.once("error", fail);
    outgoing.once("socket", (socket) => {
      socket.once(event, () => {
        clearTimeout(timer);
        outgoing.off("error", fail);
        resolve();
      });
    });
    // A request without headers on their way opens no socket.
    outgoing.flushHeaders();
  });
}

function answered(outgoing: ClientRequest, given: Forwarding): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const broken = (why: string): ForgeError =>
      new ForgeError(502, "deployment_failed", `the model's server ${why}`);
    const fail = (error: Error): void => {
      outgoing.destroy();
      reject(error);
    };
    outgoing.once("error", (error) => fail(broken(`broke off: ${error.message}`)));
    // Also where it neither answers nor breaks: after a 101, or the end of its connection.
    outgoing.once("upgrade", () => fail(broken("wants another protocol")));
    outgoing.once("close", () => reject(broken("has closed the connection")));
    outgoing.once("response", (answer) => {
      const { statusCode = 0 } = answer;
      if (statusCode >= 200 && statusCode <= 599) resolve(answer);
      else fail(broken(`has answered with status ${statusCode}`));
    });
    // Of silence: it neither reads nor writes, before its answer or in the middle of it.
    outgoing.setTimeout(given.timeoutMs, () => {
      const message = `the model's server has been silent for ${given.timeoutMs / 1000} s`;
      reject(new ForgeError(504, "deployment_timeout", message));
      outgoing.destroy(new Error(message));
    });
    const { body } = given;
    if (!(body instanceof Readable)) {
      outgoing.end();
      return;
    }
    const limit = limited(given.maxBodyBytes);
    // The client's side stays whole, so that it gets its answer; that it went, the signal tells.
    limit.once("error", (error) => {
      body.unpipe(limit);
      fail(error);
    });
    outgoing.once("close", () => {
      body.unpipe(limit);
      // The model may answer before it has read everything; drop what the client still sends.
      body.resume();
    });
    body.pipe(limit).pipe(outgoing);
  });
}

function limited(maxBytes: number): Transform {
  let passed = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      passed += chunk.length;
      if (passed <= maxBytes) done(null, chunk);
      else done(tooLarge(maxBytes));
    },
  });
}

export const tooLarge = (maxBytes: number): ForgeError =>
  new ForgeError(413, "body_too_large", `a request to a model may have ${maxBytes} bytes`);

const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** For us, and nobody's business behind us. */
const OURS = ["authorization", "x-service-api-key", "cookie", "host", "expect", "x-request-id"];

/** What a browser would take for our word, were it ever to show such an answer. */
const FOR_BROWSERS =
  /^(set-cookie2?|location|refresh|link|clear-site-data|content-security-policy.*|strict-transport-security|alt-svc|service-worker-allowed|access-control-.*|www-authenticate|x-content-type-options|x-frame-options|cross-origin-.*|origin-agent-cluster|permissions-policy|referrer-policy|report-to|reporting-endpoints|nel|sourcemap|x-sourcemap|x-request-id|ratelimit-.*|server|x-powered-by)$/;

function requestHeaders({ headers, body, method }: Forwarding): OutgoingHttpHeaders {
  const left = new Set([...HOP_BY_HOP, ...OURS, ...namedBy(headers)]);
  const passed = Object.entries(headers).filter(
    ([name]) => !left.has(name) && !/^(forwarded$|x-forwarded-)/.test(name),
  );
  const { "content-length": length, ...others } = Object.fromEntries(passed);
  // How long the body is, is said anew, so that both sides see one end of it.
  if (!(body instanceof Readable))
    return method === "POST" ? { ...others, "content-length": 0 } : others;
  return {
    ...others,
    ...(length ? { "content-length": String(length) } : { "transfer-encoding": "chunked" }),
  };
}

/** The headers of an answer as they may be passed on. */
export function answerHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const own = namedBy(headers);
  return Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string | string[]] =>
        entry[1] !== undefined &&
        ![...HOP_BY_HOP, ...own].includes(entry[0]) &&
        !FOR_BROWSERS.test(entry[0]),
    ),
  );
}

/** Headers that the Connection header calls its own. */
const namedBy = ({ connection = "" }: IncomingHttpHeaders): string[] =>
  connection.split(",").map((name) => name.trim().toLowerCase());
