import { bodyOf, encode, type HttpCall, HttpConnection, withNewKey } from "./http-connection";

export interface RequestsOptions {
  url: string;
  key: string;
  /** The calls to send, in this order. After the last call, the list starts again. */
  calls: HttpCall[];
  /** Number of connections. Each has one open request at any time. */
  connections: number;
  /** The load ends after `count` requests, or after `seconds`. */
  count?: number;
  seconds?: number;
}

export interface RequestsResult {
  perSecond: number;
  /** The latency of each request, in milliseconds. */
  latencies: number[];
}

/** Sends requests as fast as they are answered. @throws Error for a status other than 2xx. */
export async function sendRequests(options: RequestsOptions): Promise<RequestsResult> {
  const { url, key, calls, connections, count = Number.POSITIVE_INFINITY } = options;
  const requests = calls.map((call) => {
    const request = encode(call, key);
    return call.isIdempotent ? () => withNewKey(request) : () => request;
  });
  const open = await Promise.all(
    Array.from({ length: connections }, () => HttpConnection.open(url)),
  );
  const latencies: number[] = [];
  let sent = 0;
  const began = performance.now();
  const endsAt = began + (options.seconds ?? Number.POSITIVE_INFINITY) * 1000;
  const sendInTurn = async (connection: HttpConnection): Promise<void> => {
    while (sent < count) {
      const at = performance.now();
      if (at >= endsAt) return;
      const nextRequest = requests[sent++ % requests.length];
      if (!nextRequest) throw new Error("there are no calls to send");
      const answer = await connection.send(nextRequest());
      if (answer.status >= 300) bodyOf(answer);
      latencies.push(performance.now() - at);
    }
  };
  try {
    await Promise.all(open.map(sendInTurn));
    const perSecond = latencies.length / ((performance.now() - began) / 1000);
    return { perSecond, latencies };
  } finally {
    for (const connection of open) connection.close();
  }
}
