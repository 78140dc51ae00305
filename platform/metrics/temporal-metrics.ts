import { type AddressInfo, createServer } from "node:net";

const TIMEOUT_MS = 1_000;

/** Temporal's SDK serves its own metrics, on an address of this machine's that nobody else can reach. */
export class TemporalMetrics {
  private address: string | undefined;

  /** An address that is free now, for the SDK to serve them at. */
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

  /** Prometheus's text format; nothing where this process runs no workflows. */
  async text(): Promise<string> {
    if (this.address === undefined) return "";
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const answer = await fetch(`http://${this.address}/metrics`, { signal });
      return answer.ok ? await answer.text() : "";
    } catch {
      return "# Temporal's own metrics can't be read\n";
    }
  }
}
