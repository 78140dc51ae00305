import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseSync, type RegExpLiteral } from "@swc/core";
import { analyse } from "scslre";
import { SERVER_FOLDERS } from "../source-folders";
import { checkoutRoot } from "../stack/paths";

/**
 * The checked folders: their code runs in the server or in a user's program. Tests and tools need
 * no check, because they read no untrusted text.
 */
const FOLDERS = [...SERVER_FOLDERS, "sdk/typescript/src"];

interface Finding {
  at: string;
  literal: string;
  why: string;
}

/** Finds regular expressions in a source text that take more than linear time. */
export function slowExpressions(source: string, path: string): Finding[] {
  const findings: Finding[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if (isExpression(node)) findings.push(...findingsOf(node, source, path));
    else for (const inner of Object.values(node)) visit(inner);
  };
  visit(parseSync(source, { syntax: "typescript", target: "es2022" }).body);
  return findings;
}

const isExpression = (node: object): node is RegExpLiteral =>
  "type" in node && node.type === "RegExpLiteral";

function findingsOf({ pattern, flags }: RegExpLiteral, source: string, path: string): Finding[] {
  const literal = `/${pattern}/${flags}`;
  const line = source.slice(0, source.indexOf(literal)).split("\n").length;
  return analyse({ source: pattern, flags }).reports.map(({ type, exponential, character }) => ({
    at: `${path}:${line}`,
    literal,
    why: `${exponential ? "exponential" : "quadratic"} in a row of ${character.literal.source} (${type})`,
  }));
}

function sources(root: string): string[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /(?<!\.test)\.ts$/.test(entry.name))
      .map((entry) => relative(root, join(entry.parentPath, entry.name))),
  );
}

if (require.main === module) {
  const root = checkoutRoot();
  const paths = sources(root);
  const findings = paths.flatMap((path) =>
    slowExpressions(readFileSync(join(root, path), "utf8"), path),
  );
  for (const { at, literal, why } of findings)
    process.stdout.write(`${at}: ${literal} is ${why}\n`);
  process.stdout.write(`${paths.length} files, ${findings.length} slow regular expressions\n`);
  if (findings.length > 0) process.exitCode = 1;
}
