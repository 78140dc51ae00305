import { connect, type Socket } from "node:net";
import type { Forge } from "./forge";

/** Sends a worker's poll over a raw socket and leaves it waiting. */
export async function rawPoll(
  { stack }: Forge,
  workerId: string,
  waitSeconds: number,
): Promise<Socket> {
  const { hostname, port } = new URL(stack.apiUrl);
  const socket = connect(Number(port), hostname);
  await new Promise((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  const body = JSON.stringify({ worker_id: workerId, wait_seconds: waitSeconds });
  socket.write(
    `POST /worker/next_job HTTP/1.1\r\nHost: forge\r\nX-Service-Api-Key: ${stack.keys.workerKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return socket;
}
