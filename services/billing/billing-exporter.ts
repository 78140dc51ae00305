import { setTimeout as sleep } from "node:timers/promises";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../context";
import { LineDelivery } from "./line-delivery";
import { openExporter } from "./open-exporter";

const STOP_GRACE_MS = 5_000;

/**
 * Delivers billing lines to the exporter that is configured, in every server process. A line is due until
 * it is marked as exported, so that no crash loses it; that a crash between delivery and mark does not
 * bill it twice, is the exporter's part.
 */
export class BillingExporter implements Component {
  readonly name = "billing-exporter";
  private running: { loop: Loop; delivery: LineDelivery } | undefined;

  constructor(private readonly ctx: Context) {}

  async start(): Promise<void> {
    const { config, store } = this.ctx;
    const { intervalS, to } = config.billingExport;
    const exporter = await openExporter(to, store);
    if (!exporter) return;
    const delivery = new LineDelivery(this.ctx, exporter);
    const loop = new Loop("billing-export", intervalS * 1000, () => delivery.pass(), this.ctx);
    this.running = { loop, delivery };
    loop.start();
  }

  /** A delivery that hangs is not waited for: its line is found again when its lease has run out. */
  async stop(): Promise<void> {
    if (!this.running) return;
    const { loop, delivery } = this.running;
    delivery.isStopping = true;
    await Promise.race([loop.stop(), sleep(STOP_GRACE_MS, undefined, { ref: false })]);
  }
}
