import type { Attempt } from "../api-client";
import type { Say } from "../stack/say";
import type { BillingRecord, Lineage, Pipeline } from "./api";

const at = (time: string | null): string => time?.slice(11, 19) ?? "-";

/** Prints the time, status, attempts, gate and approval of each step. */
export function printTimeline(
  say: Say,
  pipeline: Pipeline,
  attempts: Map<string, Attempt[]>,
): void {
  say("\nTimeline");
  for (const step of pipeline.steps) {
    const times = `${at(step.started_at)} - ${at(step.completed_at)}`;
    say(`  ${times}  ${step.name.padEnd(9)} ${step.status}`);
    const tries = attempts.get(step.name) ?? [];
    for (const { attempt, worker_id, outcome } of tries) {
      if (tries.length > 1) say(`${" ".repeat(23)}attempt ${attempt} on ${worker_id}: ${outcome}`);
    }
    if (step.gate) {
      const values = Object.entries(step.gate.values).map(([path, value]) => `${path} = ${value}`);
      say(`${" ".repeat(23)}gate ${step.gate.condition} (${values.join(", ")})`);
    }
    if (step.approval?.by) {
      const { by, at: when, note } = step.approval;
      say(`${" ".repeat(23)}approved by ${by} at ${at(when)}: ${note}`);
    }
  }
}

/** Prints the sources of an artifact as a tree, back to the uploaded dataset. */
export function printLineage(say: Say, { nodes, edges }: Lineage, of: string): void {
  say("\nLineage");
  const nodeOf = (id: string) => nodes.find((node) => node.id === id);
  const printed = new Set<string>();
  const print = (id: string, depth: number): void => {
    const node = nodeOf(id);
    if (!node || node.type === "pipeline") return;
    const isRepeated = printed.has(id);
    printed.add(id);
    if (node.type !== "job") {
      const what = node.kind ?? node.type;
      say(`  ${"  ".repeat(depth)}${what}  ${id}${isRepeated ? "  (see above)" : ""}`);
    }
    if (isRepeated) return;
    const sources = edges.filter(({ to }) => to === id);
    for (const { from } of sources) print(from, node.type === "job" ? depth : depth + 1);
  };
  print(of, 0);
}

export function printBill(say: Say, records: BillingRecord[]): void {
  say("\nBill");
  for (const { job_type, formula, state } of records) {
    say(`  ${job_type.padEnd(9)} ${formula}${state === "final" ? "" : `  (${state})`}`);
  }
  const total = records.reduce((sum, { total_cost_usd }) => sum + total_cost_usd, 0);
  say(`  ${"total".padEnd(9)} ${Number(total.toFixed(6))} USD`);
}
