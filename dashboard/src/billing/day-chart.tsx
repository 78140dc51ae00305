import { type KeyboardEvent, useState } from "react";
import { cx } from "../ui/cx";
import { formatUsd } from "../ui/format";
import styles from "./day-chart.module.css";
import { type Day, niceTicks, tickLabel, typesIn } from "./day-stack";
import { dayName } from "./period";
import typeStyles from "./type-colors.module.css";
import { useWidth } from "./use-width";

const HEIGHT = 200;
const PAD = { top: 8, bottom: 22 };
/** The approximate width of a digit in the labels of the axis. */
const DIGIT_PX = 6.4;
const MAX_BAR = 28;

/** Bars by day, stacked by job type. The pointer or the arrow keys select a day for details. */
export function DayChart({ days, label }: { days: readonly Day[]; label: string }) {
  const [frame, width] = useWidth<HTMLDivElement>();
  const [active, setActive] = useState<number>();
  const ticks = niceTicks(Math.max(...days.map(({ total }) => total)));
  const top = ticks.at(-1) ?? 1;
  const labels = ticks.map((tick) => tickLabel(tick, ticks[1] ?? 1));
  const axis = Math.max(...labels.map(({ length }) => length)) * DIGIT_PX + 10;
  const inner = Math.max(0, width - axis);
  const slot = inner / days.length;
  const bar = Math.max(2, Math.min(MAX_BAR, slot * 0.72));
  const x = (at: number): number => axis + slot * at + (slot - bar) / 2;
  const y = (usd: number): number =>
    HEIGHT - PAD.bottom - (top > 0 ? usd / top : 0) * (HEIGHT - PAD.top - PAD.bottom);
  const every = Math.max(1, Math.ceil(34 / slot));
  const day = active === undefined ? undefined : days[active];

  const onKeyDown = (event: KeyboardEvent): void => {
    const at = active ?? -1;
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: days.length - 1 }[
      event.key
    ];
    if (event.key === "Escape") setActive(undefined);
    if (next === undefined) return;
    event.preventDefault();
    setActive(Math.max(0, Math.min(days.length - 1, next)));
  };

  return (
    <div
      ref={frame}
      className={styles.chart}
      role="group"
      aria-label={`${label}. Arrow keys move between days.`}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onBlur={() => setActive(undefined)}
      onPointerLeave={() => setActive(undefined)}
    >
      {width > 0 && (
        <svg width={width} height={HEIGHT} aria-hidden="true">
          {ticks.map((tick, index) => (
            <g key={tick}>
              <line className={styles.grid} x1={axis} x2={width} y1={y(tick)} y2={y(tick)} />
              <text className={styles.tick} x={axis - 8} y={y(tick) + 4} textAnchor="end">
                {labels[index]}
              </text>
            </g>
          ))}
          {days.map((each, at) => (
            <g key={each.day}>
              {active === at && (
                <rect
                  className={styles.slot}
                  x={axis + slot * at}
                  y={PAD.top}
                  width={slot}
                  height={HEIGHT - PAD.top - PAD.bottom}
                />
              )}
              {each.parts.map(({ type, from, to }) => (
                <rect
                  key={type}
                  className={typeStyles[type]}
                  x={x(at)}
                  y={y(to)}
                  width={bar}
                  height={Math.max(1, y(from) - y(to) - (to < each.total ? 1 : 0))}
                />
              ))}
              {at % every === 0 && (
                <text
                  className={styles.tick}
                  x={axis + slot * (at + 0.5)}
                  y={HEIGHT - 6}
                  textAnchor="middle"
                >
                  {Number(each.day.slice(-2))}
                </text>
              )}
              <rect
                className={styles.target}
                x={axis + slot * at}
                y={0}
                width={slot}
                height={HEIGHT}
                onPointerEnter={() => setActive(at)}
                onPointerDown={() => setActive(at)}
              />
            </g>
          ))}
        </svg>
      )}
      <div role="status">
        {day && active !== undefined && (
          <Tip day={day} left={axis + slot * (active + 0.5)} width={width} />
        )}
      </div>
    </div>
  );
}

function Tip({ day, left, width }: { day: Day; left: number; width: number }) {
  const isRight = left > width / 2;
  return (
    <div
      className={styles.tip}
      style={isRight ? { right: width - left + 12 } : { left: left + 12 }}
    >
      <p className={styles.day}>
        <span>{dayName(day.day)} UTC</span>
        <strong>{formatUsd(day.total)}</strong>
      </p>
      {[...day.parts].reverse().map(({ type, usd }) => (
        <p key={type} className={styles.part}>
          <span className={cx("swatch", typeStyles[type])} aria-hidden="true" />
          <span>{type}</span>
          <span>{formatUsd(usd)}</span>
        </p>
      ))}
      {day.parts.length === 0 && <p className="quiet">Nothing</p>}
    </div>
  );
}

export const Legend = ({ days }: { days: readonly Day[] }) => (
  <ul className={styles.legend} aria-label="Colours">
    {typesIn(days).map((type) => (
      <li key={type}>
        <span className={cx("swatch", typeStyles[type])} aria-hidden="true" />
        {type}
      </li>
    ))}
  </ul>
);
