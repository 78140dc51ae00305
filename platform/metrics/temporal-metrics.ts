import { type AddressInfo, createServer } from "node:net";

const TIMEOUT_MS = 1_000;

/** Reads the metrics that Temporal's SDK serves on a loopback address. */
export class TemporalMetrics {
  private address: string | undefined;

  /** Chooses a free address for the SDK to serve its metrics on. */
  async open(): Promise<string> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    this.address = `127.0.0.1:${port}`;
    return this.address;
  }

  /** Prometheus's text format; empty if this process runs no workflows. */
  async text(): Promise<string> {
    if (this.address === undefined) return "";
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const answer = await fetch(`http://${this.address}/metrics`, { signal });
      return answer.ok ? await answer.text() : "";
    } catch {
      return "# the metrics of Temporal's SDK can't be read\n";
    }
  }
}
