import type { HostedServer, ServerHost } from "../../dev/stack/stack";
import type { HostRequest } from "../../dev/test/server-host";

/** A client for a process of dev/test/server-host.ts. */
function hostAt(address: string): ServerHost {
  return {
    async start(env, logFile): Promise<HostedServer> {
      const asked: HostRequest = { env, logFile };
      const url = await ask(address, { method: "POST", body: JSON.stringify(asked) });
      return {
        url,
        stop: async () => {
          await ask(`${address}/?${encodeURIComponent(url)}`, { method: "DELETE" });
        },
      };
    },
  };
}

/**
 * The process in which this jest worker's test files run their servers, one file after the other.
 * Undefined for a file that runs without the shared processes of `npm test`.
 */
export function hostOfThisWorker(): ServerHost | undefined {
  const { TEST_SERVER_HOSTS: hosts, JEST_WORKER_ID: lane } = process.env;
  const address = hosts?.split(" ")[Number(lane ?? 1) - 1];
  return address === undefined ? undefined : hostAt(address);
}

async function ask(url: string, request: RequestInit): Promise<string> {
  const response = await fetch(url, request);
  const text = await response.text();
  if (!response.ok) throw new Error(`the server's host: ${text}`);
  return text;
}
