import type { BillingExportConfig } from "../../platform/config/billing";
import type { ObjectStore } from "../../platform/store/object-store";
import { FileExporter } from "./file-exporter";
import { StripeExporter } from "./stripe-exporter";
import type { UsageExporter } from "./usage-exporter";

/** The configured exporter; undefined if usage is not exported. */
export async function openExporter(
  to: BillingExportConfig["to"],
  store: ObjectStore,
): Promise<UsageExporter | undefined> {
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
