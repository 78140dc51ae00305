import jsep, { type Expression } from "jsep";
import { InvalidRequest } from "../errors";

/** What a condition may refer to. `scores` and `quality` are parts of the step's result. */
export interface GateFacts {
  result: Record<string, unknown>;
  scores: unknown;
  quality: unknown;
  metrics: Record<string, unknown>;
}
const ROOTS: readonly string[] = [
  "result",
  "scores",
  "quality",
  "metrics",
] satisfies (keyof GateFacts)[];

type Value = number | string | boolean | null;

export interface Verdict {
  passed: boolean;
  /** The values that the condition refers to, by path; null: missing. */
  values: Record<string, Value>;
  /** Why the condition could not be evaluated. */
  error?: string;
}

const COMPARISONS: Record<string, (a: number, b: number) => boolean> = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};
const ARITHMETIC: Record<string, (a: number, b: number) => number> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
};
const OPERATORS = [
  ...Object.keys(COMPARISONS),
  ...["==", "!=", "&&", "||"],
  ...Object.keys(ARITHMETIC),
];

/** The condition has no result, e.g. because a value is missing or is not a number. */
class CannotEvaluate extends Error {
  override readonly name = "CannotEvaluate";
}

/**
 * Validates a condition such as `scores.overall >= 0.7 && quality.clarity_mean > 0.5`. Allowed are
 * comparisons, `&& || !`, arithmetic, numbers, strings, booleans and paths. The library jsep only
 * parses the text; this file evaluates it.
 * @throws InvalidRequest that says what is wrong.
 */
export function checkCondition(text: string): void {
  const tree = parse(text);
  check(tree, text);
  const isComparison =
    tree.type === "UnaryExpression"
      ? tree.operator === "!"
      : isBinary(tree) && !isArithmetic(tree.operator);
  if (!isComparison) throw invalid(text, "it must be a comparison, such as scores.overall >= 0.7");
}

/** Evaluates a condition that passed `checkCondition`: a gate, or the `where` of a choice. */
export function evaluateCondition(text: string, facts: GateFacts): Verdict {
  const tree = parse(text);
  const values: Record<string, Value> = {};
  for (const path of pathsIn(tree)) values[path.join(".")] = shown(plain(valueAt(facts, path)));
  try {
    return { passed: evaluate(tree, facts) === true, values };
  } catch (error) {
    if (!(error instanceof CannotEvaluate)) throw error;
    return { passed: false, values, error: error.message };
  }
}

/** Returns the number at a path in the facts; undefined if there is no number at this path. */
export function measure(path: string, facts: GateFacts): number | undefined {
  const value = valueAt(facts, path.split("."));
  return typeof value === "number" ? value : undefined;
}

/** For example `scores.overall >= 0.7 does not hold: scores.overall is 0.62`. */
export function explain(text: string, { values, error }: Verdict): string {
  const shownValues = Object.entries(values).map(
    ([path, value]) => `${path} is ${JSON.stringify(value)}`,
  );
  return `${text} does not hold: ${error ?? shownValues.join(", ")}`;
}

function parse(text: string): Expression {
  try {
    return jsep(text);
  } catch (error) {
    throw invalid(text, error instanceof Error ? error.message : String(error));
  }
}

const invalid = (text: string, why: string): InvalidRequest =>
  new InvalidRequest(`invalid condition "${text}": ${why}`);

type Binary = Expression & { operator: string; left: Expression; right: Expression };
const isBinary = (node: Expression): node is Binary =>
  node.type === "BinaryExpression" || node.type === "LogicalExpression";
const isArithmetic = (operator: string): boolean => operator in ARITHMETIC;

function check(node: Expression, text: string): void {
  if (isBinary(node)) {
    const { operator } = node;
    if (!OPERATORS.includes(operator)) {
      throw invalid(text, `unknown operator "${operator}"; use one of ${OPERATORS.join(" ")}`);
    }
    check(node.left, text);
    check(node.right, text);
    return;
  }
  if (node.type === "UnaryExpression" && ["!", "-"].includes(String(node.operator))) {
    check(node.argument as Expression, text);
    return;
  }
  if (node.type === "Literal" && ["number", "string", "boolean"].includes(typeof node.value))
    return;
  const path = pathOf(node);
  if (path === undefined) {
    throw invalid(text, "use only comparisons, && || !, arithmetic, numbers, strings and paths");
  }
  if (!ROOTS.includes(path[0] ?? "") || path.length < 2) {
    const roots = `${ROOTS.join(". ")}.`;
    throw invalid(text, `unknown path "${path.join(".")}"; paths start with one of ${roots}`);
  }
}

/** The names of a path like `scores.overall`; undefined if the node is not a path. */
function pathOf(node: Expression): string[] | undefined {
  if (node.type === "Identifier") return [String(node.name)];
  if (node.type !== "MemberExpression") return undefined;
  const inner = pathOf(node.object as Expression);
  const property = node.property as Expression;
  if (!inner) return undefined;
  if (!node.computed && property.type === "Identifier") return [...inner, String(property.name)];
  const isName = node.computed === true && typeof property.value === "string";
  return isName ? [...inner, String(property.value)] : undefined;
}

function pathsIn(node: Expression): string[][] {
  if (isBinary(node)) return [...pathsIn(node.left), ...pathsIn(node.right)];
  if (node.type === "UnaryExpression") return pathsIn(node.argument as Expression);
  const path = pathOf(node);
  return path ? [path] : [];
}

function evaluate(node: Expression, facts: GateFacts): Value {
  if (node.type === "Literal") return node.value as Value;
  if (node.type === "UnaryExpression") {
    const value = evaluate(node.argument as Expression, facts);
    return node.operator === "!" ? !truth(value) : -number(value);
  }
  if (!isBinary(node)) {
    const path = pathOf(node) ?? [];
    const value = plain(valueAt(facts, path));
    if (value === null) throw new CannotEvaluate(`there is no ${path.join(".")} in its result`);
    return value;
  }
  const { operator, left, right } = node;
  if (operator === "&&") return truth(evaluate(left, facts)) && truth(evaluate(right, facts));
  if (operator === "||") return truth(evaluate(left, facts)) || truth(evaluate(right, facts));
  const [a, b] = [evaluate(left, facts), evaluate(right, facts)];
  if (operator === "==") return a === b;
  if (operator === "!=") return a !== b;
  const compare = COMPARISONS[operator];
  if (compare) return compare(number(a), number(b));
  return number(ARITHMETIC[operator]?.(number(a), number(b)) ?? null);
}

function number(value: Value): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new CannotEvaluate(`${String(value)} is not a number`);
}

function truth(value: Value): boolean {
  if (typeof value === "boolean") return value;
  throw new CannotEvaluate(`${JSON.stringify(value)} is not true or false`);
}

/** The value at this path of an object's own properties; undefined if there is none. */
export function valueAt(object: unknown, path: readonly string[]): unknown {
  return path.reduce((at, name) => {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    return (at as Record<string, unknown>)[name];
  }, object);
}

const MAX_SHOWN = 200;

const shown = (value: Value): Value =>
  typeof value === "string" && value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value;

const plain = (value: unknown): Value =>
  typeof value === "number" || typeof value === "string" || typeof value === "boolean"
    ? value
    : null;
