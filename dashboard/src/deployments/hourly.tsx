import { Money } from "../ui/money";

const CENT = 0.01;

/** The cost of an hour; with all digits below one cent. */
export const Hourly = ({ usd }: { usd: number | null }) => (
  <Money usd={usd} digits={usd !== null && usd < CENT ? 6 : 2} />
);
