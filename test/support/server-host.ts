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
 * The host of this jest worker, which runs its files one after the other. Undefined for a file that
 * runs alone.
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
