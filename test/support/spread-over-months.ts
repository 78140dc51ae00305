import { execute } from "../../platform/postgres/pool";
import type { Forge } from "./forge";

/**
 * From now on, each attempt starts up to 30 hours in the past, and each bill has a date in the last
 * three months, so that GPU hours and periods are realistic. Forge itself computes everything that
 * depends on these times.
 */
export async function spreadOverMonths({ ctx }: Forge): Promise<void> {
  for (const statement of [
    `create function test_begin_earlier() returns trigger language plpgsql as $$
     begin
       new.started_at := new.started_at - random() * interval '30 hours';
       return new;
     end $$`,
    `create trigger test_begin_earlier before update on attempts for each row
     when (new.state = 'running' and old.state <> 'running') execute function test_begin_earlier()`,
    `create function test_bill_earlier() returns trigger language plpgsql as $$
     begin
       new.created_at := date_trunc('milliseconds', new.created_at - random() * interval '90 days');
       return new;
     end $$`,
    `create trigger test_bill_earlier before insert on billing_records for each row
     when (new.state = 'final') execute function test_bill_earlier()`,
    // The month of such an old bill may be closed. Forge then writes the bill's line to the open
    // month. So move each line to its bill's month, which is the last part of the line's id.
    `create function test_line_earlier() returns trigger language plpgsql as $$
     begin
       new.month := to_date(right(new.line_id, 7), 'YYYY-MM');
       return new;
     end $$`,
    `create trigger test_line_earlier before insert on billing_lines for each row
     when (new.job_id is not null and new.is_billed) execute function test_line_earlier()`,
  ]) {
    await execute(ctx.pool, statement);
  }
}
