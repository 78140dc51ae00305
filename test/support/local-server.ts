import type { Server } from "node:http";
import type { AddressInfo, Server as TcpServer } from "node:net";

/** Listens on a free port of this machine. @returns the URL. */
export async function listen(server: TcpServer): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return addressOf(server);
}

export const addressOf = (server: TcpServer): string =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

/** Closes a server and its connections. */
export async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
