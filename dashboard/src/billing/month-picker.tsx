import { ChevronLeft, ChevronRight } from "lucide-react";
import { IconButton } from "../ui/button";
import { Select } from "../ui/field";
import { useHotkeys } from "../ui/hotkeys";
import styles from "./month-picker.module.css";
import { periodName, shiftPeriod } from "./period";

interface Props {
  period: string;
  current: string;
  onChange: (period: string) => void;
}

const OFFERED = 24;

/** Offers the last two years. The URL accepts any month. */
export function MonthPicker({ period, current, onChange }: Props) {
  const months = Array.from({ length: OFFERED }, (_, back) => shiftPeriod(current, -back));
  const offered = months.includes(period) ? months : [period, ...months];
  const isLast = period >= current;
  const move = (by: number): void => {
    if (by < 0 || !isLast) onChange(shiftPeriod(period, by));
  };
  useHotkeys([
    { keys: "[", what: "Month before", run: () => move(-1) },
    { keys: "]", what: "Next month", run: () => move(1) },
  ]);
  return (
    <div className={styles.picker}>
      <IconButton label="Month before" onClick={() => move(-1)}>
        <ChevronLeft size={16} />
      </IconButton>
      <Select
        aria-label="Month, in UTC"
        value={period}
        onChange={({ target }) => onChange(target.value)}
      >
        {offered.map((each) => (
          <option key={each} value={each}>
            {periodName(each)} (UTC)
          </option>
        ))}
      </Select>
      <IconButton label="Next month" disabled={isLast} onClick={() => move(1)}>
        <ChevronRight size={16} />
      </IconButton>
    </div>
  );
}
