import { formatUsd } from "./format";

/** USD: two decimals in lists, six in records. The tooltip always has six. */
export function Money({ usd, digits = 2 }: { usd: number | null | undefined; digits?: 2 | 6 }) {
  return <span title={usd == null ? undefined : formatUsd(usd, 6)}>{formatUsd(usd, digits)}</span>;
}
