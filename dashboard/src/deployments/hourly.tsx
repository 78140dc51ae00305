import { Money } from "../ui/money";

const CENT = 0.01;

/** What an hour costs; with all digits where it is less than a cent. */
export const Hourly = ({ usd }: { usd: number | null }) => (
  <Money usd={usd} digits={usd !== null && usd < CENT ? 6 : 2} />
);
