import type { DailyBilling } from "@forge/sdk";
import { useState } from "react";
import { Button } from "../ui/button";
import { Section } from "../ui/page";
import { Skeleton } from "../ui/skeleton";
import { DayChart, Legend } from "./day-chart";
import { stackDays } from "./day-stack";
import { DayTable } from "./day-table";
import { periodName } from "./period";

export function DailySection({ daily }: { daily: DailyBilling | undefined }) {
  const [isTable, setTable] = useState(false);
  const days = daily && stackDays(daily);
  const isEmpty = days?.every(({ total }) => total === 0);
  return (
    <Section
      title="Cost per day"
      actions={
        !isEmpty && (
          <Button size="small" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
            {isTable ? "As a chart" : "As a table"}
          </Button>
        )
      }
    >
      {!days || !daily ? (
        <Skeleton height={200} />
      ) : isEmpty ? (
        <p className="quiet">Nothing was billed in this month.</p>
      ) : isTable ? (
        <DayTable days={days} />
      ) : (
        <>
          <Legend days={days} />
          <DayChart days={days} label={`Cost per day of ${periodName(daily.period)}, in USD`} />
        </>
      )}
    </Section>
  );
}
