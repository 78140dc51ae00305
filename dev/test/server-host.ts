import "../../bin/private-files";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { createServer as createForgeServer } from "../../bin/server";
import { startServer } from "../../bin/start-server";
import { loadConfig } from "../../platform/config/config";
import { createLogger } from "../../platform/logger";
import type { Service } from "../../platform/service";
import { createContext } from "../../services/context";

/** The body of a POST request from test/support/server-host.ts. */
export interface HostRequest {
  env: NodeJS.ProcessEnv;
  logFile: string;
}

const running = new Map<string, Service>();

/** Starts a complete forge-server like bin/forge-server.ts, with the given environment. */
async function start({ env, logFile }: HostRequest): Promise<string> {
  const { config } = loadConfig(env);
  const ctx = createContext(config, createLogger(config.logLevel, logFile));
  let url = "";
  const service = await createForgeServer(ctx, "all", (at) => {
    url = at;
  });
  try {
    await startServer(ctx, service);
  } catch (error) {
    await service.stop();
    throw error;
  }
  running.set(url, service);
  return url;
}

async function stop(url: string): Promise<void> {
  const service = running.get(url);
  running.delete(url);
  await service?.stop();
}

/**
 * A process that runs forge-servers for test files, one after the other. Loading a server's code
 * takes more CPU time than most test files need. This process loads and compiles the code once. Its
 * HTTP interface on the given port: POST starts a server and returns the server's address; DELETE
 * with the address in the query stops the server.
 */
createServer(async (request, response) => {
  try {
    if (request.method === "POST") response.end(await start((await json(request)) as HostRequest));
    else response.end(await stop(decodeURIComponent(request.url?.slice(2) ?? "")));
  } catch (error) {
    response.statusCode = 500;
    response.end(error instanceof Error ? error.stack : String(error));
  }
}).listen(Number(process.argv[2]), "127.0.0.1");
