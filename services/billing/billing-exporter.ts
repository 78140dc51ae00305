import type { Component } from "../../platform/service";
import type { Context } from "../context";
import { Courier } from "../outbox/courier";
import { LineTopic } from "./line-topic";
import { openExporter } from "./open-exporter";

/** Delivers billing lines to the configured exporter. Runs in every server process. */
export class BillingExporter implements Component {
  readonly name = "billing-exporter";
  private courier: Component | undefined;

  constructor(private readonly ctx: Context) {}

  async start(): Promise<void> {
    const { config, store } = this.ctx;
    const exporter = await openExporter(config.billingExport.to, store);
    if (!exporter) return;
    this.courier = new Courier(this.ctx, new LineTopic(this.ctx, exporter));
    await this.courier.start();
  }

  async stop(): Promise<void> {
    await this.courier?.stop();
  }
}
