import { formatUsd } from "./format";

interface Props {
  usd: number | null | undefined;
  /** The number of decimals. The details of a single job, bill or artifact show six. */
  digits?: 2 | 6;
  /** Whether to show the dollar sign. False if the column's header has it. */
  unit?: boolean;
}

/** An amount in USD. The tooltip always shows six decimals. */
export function Money({ usd, digits = 2, unit = true }: Props) {
  const text = formatUsd(usd, digits);
  return (
    <span title={usd == null ? undefined : formatUsd(usd, 6)}>
      {unit ? text : text.replace("$", "")}
    </span>
  );
}
