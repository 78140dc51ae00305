import type { ObjectStore } from "../../platform/store/object-store";
import { type CsvValue, csvOf } from "./csv";
import type { Delivery, DueLine, ExportedLine, UsageExporter } from "./usage-exporter";

const COLUMNS = [
  "line_id",
  "user_id",
  "customer_id",
  "month",
  "job_id",
  "job_type",
  "cost_usd",
  "gpu_hours",
  "tokens",
  "gb_months",
  "created_at",
] as const satisfies readonly (keyof ExportedLine)[];

/**
 * Writes each line to its own file in the object store. A file's name and content depend only on
 * its line, so several processes can write it, at any time and more than once.
 */
export class FileExporter implements UsageExporter {
  readonly name: string;
  readonly needsCustomer = false;

  constructor(
    private readonly store: ObjectStore,
    private readonly format: "csv" | "json",
  ) {
    this.name = format;
  }

  laneOf({ line_id: id }: ExportedLine): string {
    return id;
  }

  async deliver(line: DueLine): Promise<Delivery> {
    const record = recordOf(line);
    const text = this.format === "csv" ? csvOf(COLUMNS, [record]) : `${JSON.stringify(record)}\n`;
    try {
      await this.store.put(exportKey(line, this.format), Buffer.from(text));
      return { accepted: true };
    } catch (error) {
      const reason = `unavailable: the artifact store: ${String(error)}`;
      return { accepted: false, reason, retry: "soon", mayHaveArrived: false };
    }
  }
}

/** One folder per day, so that a reader finds new files without listing all. */
const exportKey = (line: ExportedLine, extension: string): string =>
  `billing/exports/${line.created_at.toISOString().slice(0, 10)}/${encodeURIComponent(line.line_id)}.${extension}`;

function recordOf(line: ExportedLine): Record<(typeof COLUMNS)[number], CsvValue> {
  const columns = Object.fromEntries(COLUMNS.map((column) => [column, line[column]]));
  return {
    ...(columns as Omit<ExportedLine, "created_at">),
    created_at: line.created_at.toISOString(),
  };
}
