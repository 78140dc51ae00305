import type { Component } from "../../platform/service";
import type { Context } from "../context";
import { Courier } from "../outbox/courier";
import { FileExporter } from "./file-exporter";
import { LineTopic } from "./line-topic";
import { StripeExporter } from "./stripe-exporter";
import type { UsageExporter } from "./usage-exporter";

/** Delivers billing lines to the configured exporter. Runs in every server process. */
export class BillingExporter implements Component {
  readonly name = "billing-exporter";
  private courier: Component | undefined;

  constructor(private readonly ctx: Context) {}

  async start(): Promise<void> {
    const exporter = await openExporter(this.ctx);
    if (!exporter) return;
    this.courier = new Courier(this.ctx, new LineTopic(this.ctx, exporter));
    await this.courier.start();
  }

  async stop(): Promise<void> {
    await this.courier?.stop();
  }
}

async function openExporter({ config, store }: Context): Promise<UsageExporter | undefined> {
  const { to } = config.billingExport;
  switch (to.name) {
    case "none":
      return undefined;
    case "csv":
    case "json":
      return new FileExporter(store, to.name);
    case "stripe":
      return await StripeExporter.open(to);
  }
}
