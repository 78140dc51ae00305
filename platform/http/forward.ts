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

/** No connection was established, so no request was sent: the caller may try another server. */
export class NotReached extends Error {
  override readonly name = "NotReached";
}

export interface Forwarding {
  method: string;
  headers: IncomingHttpHeaders;
  /** The unread body. It is read only after the connection is established. */
  body: unknown;
  maxBodyBytes: number;
  /** Longest time without any data in either direction. */
  timeoutMs: number;
  addresses: AddressPolicy;
  /** Bearer token of the model's server. The caller's own credentials are not forwarded. */
  token: string | null;
  requestId: string;
  /**
   * Aborted when the client disconnects, when the client's API key expires or is revoked, and when
   * this server stops (with the reason "closing").
   */
  signal: AbortSignal;
}

/**
 * Forwards a request and returns the response when its headers have arrived. Both bodies are
 * streamed. Each request uses a new connection, because the model's server may close a reused
 * connection at any time. It would then be unknown whether that server has processed the request,
 * so the request could not be sent again.
 *
 * @throws NotReached if the caller may try another server.
 */
export async function forward(target: URL, given: Forwarding): Promise<IncomingMessage> {
  const { addresses, method, signal } = given;
  const host = target.hostname.replace(/^\[|\]$/g, "");
  // `lookup` is not called for an IP address, so check it here.
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
    // When this server stops, it gives open responses some time to finish.
    if (signal.reason !== "closing") outgoing.destroy(new Error("the client is gone"));
  };
  signal.addEventListener("abort", hangUp);
  outgoing.once("close", () => signal.removeEventListener("abort", hangUp));
  // Once the response has arrived, its own stream reports errors. Without this listener, an error
  // of the request would end the process.
  outgoing.on("error", () => undefined);
  await connected(outgoing, target.protocol === "https:" ? "secureConnect" : "connect");
  if (signal.aborted) hangUp();
  return await waitForResponse(outgoing, given);
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
    // Node opens the socket only when headers are sent.
    outgoing.flushHeaders();
  });
}

function waitForResponse(outgoing: ClientRequest, given: Forwarding): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const badGateway = (why: string): ForgeError =>
      new ForgeError(502, "deployment_failed", `the model's server ${why}`);
    const fail = (error: Error): void => {
      outgoing.destroy();
      reject(error);
    };
    outgoing.once("error", (error) => fail(badGateway(`broke the connection: ${error.message}`)));
    // For a 101 response or a closed connection, Node emits neither `response` nor `error`.
    outgoing.once("upgrade", () => fail(badGateway("switched to another protocol")));
    outgoing.once("close", () => reject(badGateway("closed the connection")));
    outgoing.once("response", (answer) => {
      const { statusCode = 0 } = answer;
      if (statusCode >= 200 && statusCode <= 599) resolve(answer);
      else fail(badGateway(`responded with status ${statusCode}`));
    });
    // Fires after `timeoutMs` without data in either direction, before or during the response.
    outgoing.setTimeout(given.timeoutMs, () => {
      const message = `the model's server sent no data for ${given.timeoutMs / 1000} s`;
      reject(new ForgeError(504, "deployment_timeout", message));
      outgoing.destroy(new Error(message));
    });
    const { body } = given;
    if (!(body instanceof Readable)) {
      outgoing.end();
      return;
    }
    const limit = limitBytes(given.maxBodyBytes);
    // Don't destroy the body: that would close the client's connection before the error response.
    limit.once("error", (error) => {
      body.unpipe(limit);
      fail(error);
    });
    outgoing.once("close", () => {
      body.unpipe(limit);
      // The model may respond before it has read the whole body. Drop what the client still sends.
      body.resume();
    });
    body.pipe(limit).pipe(outgoing);
  });
}

function limitBytes(maxBytes: number): Transform {
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
  new ForgeError(413, "body_too_large", `a request to a model may have at most ${maxBytes} bytes`);

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

/** Headers meant for this server, which are not forwarded. */
const OURS = ["authorization", "x-service-api-key", "cookie", "host", "expect", "x-request-id"];

/** Dropped response headers: a browser would apply them to this server's origin. */
const FOR_BROWSERS =
  /^(set-cookie2?|location|refresh|link|clear-site-data|content-security-policy.*|strict-transport-security|alt-svc|service-worker-allowed|access-control-.*|www-authenticate|x-content-type-options|x-frame-options|cross-origin-.*|origin-agent-cluster|permissions-policy|referrer-policy|report-to|reporting-endpoints|nel|sourcemap|x-sourcemap|x-request-id|ratelimit-.*|server|x-powered-by)$/;

function requestHeaders({ headers, body, method }: Forwarding): OutgoingHttpHeaders {
  const dropped = new Set([...HOP_BY_HOP, ...OURS, ...namedBy(headers)]);
  const passed = Object.entries(headers).filter(
    ([name]) => !dropped.has(name) && !/^(forwarded$|x-forwarded-)/.test(name),
  );
  const { "content-length": length, ...others } = Object.fromEntries(passed);
  // State how the body ends, so that this server and the model's server agree on its end.
  if (!(body instanceof Readable))
    return method === "POST" ? { ...others, "content-length": 0 } : others;
  return {
    ...others,
    ...(length ? { "content-length": String(length) } : { "transfer-encoding": "chunked" }),
  };
}

/** The response headers that may be passed to the client. */
export function answerHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const dropped = new Set([...HOP_BY_HOP, ...namedBy(headers)]);
  const passed = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !dropped.has(name) && !FOR_BROWSERS.test(name),
  );
  return Object.fromEntries(passed) as Record<string, string | string[]>;
}

/** Hop-by-hop headers that the Connection header names. */
const namedBy = ({ connection = "" }: IncomingHttpHeaders): string[] =>
  connection.split(",").map((name) => name.trim().toLowerCase());
