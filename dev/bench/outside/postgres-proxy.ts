import { once } from "node:events";
import {
  type AddressInfo,
  createConnection,
  createServer,
  type Server,
  type Socket,
} from "node:net";
import { joinSockets } from "../../stack/join-sockets";
import { splitMessages } from "./postgres-messages";

const CONTROL = /^\s*(begin|start transaction|commit|rollback)\b/i;

/**
 * A TCP proxy that parses the wire protocol and records a client's statements. The Postgres server
 * needs no special setting. TLS connections are not recorded.
 */
export class CountingPostgresProxy {
  /**
   * The statements of each ended transaction, in order. A statement outside of BEGIN and COMMIT is
   * a transaction of its own.
   */
  private transactions: string[][] = [];
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly target: URL,
  ) {}

  /** @param databaseUrl the database behind the proxy. */
  static async start(databaseUrl: string): Promise<CountingPostgresProxy> {
    const server = createServer();
    const proxy = new CountingPostgresProxy(server, new URL(databaseUrl));
    server.on("connection", (client) => proxy.forward(client));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  /** URL of the database through the proxy. */
  get url(): string {
    const { username, password, pathname } = this.target;
    const { port } = this.server.address() as AddressInfo;
    return `postgres://${username}:${password}@127.0.0.1:${port}${pathname}`;
  }

  /** Returns the transactions since the last call, each without its BEGIN and COMMIT. */
  take(): string[][] {
    const { transactions } = this;
    this.transactions = [];
    return transactions;
  }

  stop(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private forward(client: Socket): void {
    const server = this.connectToTarget();
    const statements = new Map<string, string>();
    let bound = "";
    let current: string[] = [];
    const note = (text: string): void => void current.push(text);
    client.on(
      "data",
      splitMessages({ hasStartup: true }, (type, content) => {
        const [first = "", second = ""] = content.toString("utf8").split("\0", 2);
        if (type === "P") statements.set(first, second);
        if (type === "B") bound = second;
        if (type === "E") note(statements.get(bound) ?? `unknown statement ${bound}`);
        if (type === "Q") note(first);
      }),
    );
    server.on(
      "data",
      splitMessages({ hasStartup: false }, (type, content) => {
        // ReadyForQuery outside of a transaction block: the transaction has ended.
        if (type !== "Z" || content.toString() !== "I" || current.length === 0) return;
        this.transactions.push(current.filter((text) => !CONTROL.test(text)));
        current = [];
      }),
    );
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    }
    joinSockets(client, server);
  }

  private connectToTarget(): Socket {
    const { hostname, port, searchParams } = this.target;
    const folder = searchParams.get("host");
    if (folder?.startsWith("/")) return createConnection(`${folder}/.s.PGSQL.${port}`);
    return createConnection({ host: hostname, port: Number(port) });
  }
}
