import { formatUsd } from "../ui/format";
import { type Day, typesIn } from "./day-stack";
import { dayName } from "./period";
import styles from "./plain-table.module.css";

/** The chart's numbers as a table. Days without a cost are left out. */
export function DayTable({ days }: { days: readonly Day[] }) {
  const types = typesIn(days);
  return (
    <section className={styles.scroll} tabIndex={0} aria-label="Cost per day, as a table">
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Day (UTC)</th>
            {types.map((type) => (
              <th key={type} scope="col" className={styles.right}>
                {type}
              </th>
            ))}
            <th scope="col" className={styles.right}>
              Total
            </th>
          </tr>
        </thead>
        <tbody>
          {days
            .filter(({ total }) => total > 0)
            .map(({ day, parts, total }) => (
              <tr key={day}>
                <th scope="row">{dayName(day)}</th>
                {types.map((type) => (
                  <td key={type} className={styles.right}>
                    {formatUsd(parts.find((part) => part.type === type)?.usd)}
                  </td>
                ))}
                <td className={styles.right}>{formatUsd(total)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </section>
  );
}
