import type { Server } from "node:http";
import type { AddressInfo, Server as TcpServer } from "node:net";

/** Has a server listen on a free port of this machine; its address. */
export async function listen(server: TcpServer): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return addressOf(server);
}

export const addressOf = (server: TcpServer): string =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

/** With the connections that it has. */
export async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
