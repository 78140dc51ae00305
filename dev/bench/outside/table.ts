import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "../../stack/paths";
import type { Facts } from "./machine";
import type { Goal, Row, Spread } from "./rows";

export interface Report {
  facts: Facts;
  form: "full" | "quick";
  seconds: number;
  rows: Row[];
}

const HEAD = ["", "What", "Forge", "Peer", "Ratio", "Goal", "", "Generator"];

/** The report as Markdown. */
export function tableOf({ facts, form, seconds, rows }: Report): string {
  const lines = [HEAD, HEAD.map(() => "---"), ...rows.map(cellsOf)];
  return [
    `Commit ${facts.commit}, ${facts.date}, ${form} form in ${Math.round(seconds)} s. ${facts.cpu}, ` +
      `${facts.cores} cores, ${facts.memoryGib} GiB; ${facts.system}; Node ${facts.node}, Postgres ` +
      `${facts.postgres}, Temporal ${facts.temporal}; load before: ${facts.loadBefore.toFixed(1)}.`,
    "",
    ...lines.map((cells) => `| ${cells.join(" | ")} |`),
  ].join("\n");
}

function cellsOf(row: Row): string[] {
  const { id, what, unit, forge, peer, ratio, goal, isMet, generatorShare } = row;
  return [
    id,
    what,
    rangeOf(forge, unit),
    peer ? `${rangeOf(peer, unit)} ${peer.name}` : "",
    ratio ? rangeOf(ratio, "") : "",
    goal ? goalOf(goal, unit) : "",
    isMet === undefined ? "" : isMet ? "met" : "not met",
    generatorShare === undefined ? "" : `${Math.round(generatorShare * 100)} %`,
  ];
}

/** The median, with minimum and maximum. */
function rangeOf({ median, min, max }: Spread, unit: string): string {
  const shown = `${short(median)}${unit === "" || unit.startsWith("/") ? unit : ` ${unit}`}`;
  return min === max ? shown : `${shown} (${short(min)}-${short(max)})`;
}

function goalOf({ of, atLeast, atMost }: Goal, unit: string): string {
  const sign = atLeast === undefined ? "≤" : "≥";
  const value = short(atLeast ?? atMost ?? Number.NaN);
  if (of === "ratio") return `ratio ${sign} ${value}`;
  return `${sign} ${value}${unit === "" || unit.startsWith("/") ? unit : ` ${unit}`}`;
}

/** Rounds to three significant digits. */
function short(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}

const BEGIN = "<!-- npm run bench -- --write: begin -->";
const END = "<!-- npm run bench -- --write: end -->";

/** Replaces the table in docs/performance.md. */
export function writeTable(table: string): void {
  const file = join(checkoutRoot(), "docs", "performance.md");
  const text = readFileSync(file, "utf8");
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${file} has no place for the table: ${BEGIN}`);
  writeFileSync(file, `${text.slice(0, begin + BEGIN.length)}\n${table}\n${text.slice(end)}`);
}
