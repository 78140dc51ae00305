import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * A minimal Node server for a fleet, as the baseline of the fleet benchmark: it holds polls for
 * their requested time and answers heartbeats. It has no authentication, storage or jobs.
 */
const server = createServer((request, response) => {
  let text = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => {
    text += chunk;
  });
  request.on("end", () => {
    const body = JSON.parse(text) as { worker_id: string; wait_seconds?: number };
    const answer = (status: number, content: object): void => {
      const json = JSON.stringify(content);
      response.writeHead(status, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(json),
      });
      response.end(json);
    };
    if (request.url?.endsWith("/next_job")) {
      setTimeout(() => answer(200, { job_id: null }), (body.wait_seconds ?? 0) * 1000);
    } else if (request.url?.endsWith("/register")) {
      answer(201, { worker_id: body.worker_id });
    } else {
      answer(200, { worker_id: body.worker_id, status: "idle", commands: [] });
    }
  });
});

process.on("disconnect", () => process.exit());
// Never close a connection between two heartbeats.
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.send?.(`http://127.0.0.1:${port}`);
});
