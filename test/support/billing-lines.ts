import { waitFor } from "../../dev/stack/wait";
import { execute, maybeOne } from "../../platform/postgres/pool";
import type { Forge } from "./forge";

export interface LineState {
  exported_at: Date | null;
  export_error: string | null;
  in_doubt: boolean;
  due: string;
  /** How many hours from now the line is due for export. */
  due_in_h: number;
}

/** Inserts a billing line for storage, as Forge does when it closes a month. */
export async function addLine(
  { ctx }: Forge,
  lineId: string,
  more: { userId?: string; costUsd?: string; ageS?: number; askedS?: number; dueInS?: number } = {},
): Promise<void> {
  await execute(
    ctx.pool,
    `insert into billing_lines (line_id, user_id, month, cost_usd, gb_months, created_at, export_asked_at,
                                export_due_at)
     values ($1, $2, '2026-11-01', $3, 1.5, now() - make_interval(secs => $4),
             now() - make_interval(secs => $5), now() + make_interval(secs => $6))`,
    [
      lineId,
      more.userId ?? "local",
      more.costUsd ?? "1",
      more.ageS ?? 0,
      more.askedS ?? null,
      more.dueInS ?? 0,
    ],
  );
}

export async function lineState({ ctx }: Forge, lineId: string): Promise<LineState> {
  const found = await maybeOne<LineState>(
    ctx.pool,
    `select exported_at, export_error, export_asked_at is not null as in_doubt,
            export_due_at::text as due,
            case when isfinite(export_due_at)
                 then extract(epoch from export_due_at - now())::float8 / 3600 end as due_in_h
     from billing_lines where line_id = $1`,
    [lineId],
  );
  if (!found) throw new Error(`there is no line ${lineId}`);
  return found;
}

export async function untilExported(forge: Forge, lineId: string): Promise<LineState> {
  return await waitFor(`${lineId} to be exported`, async () => {
    const state = await lineState(forge, lineId);
    return state.exported_at ? state : undefined;
  });
}

/** Waits until the line has an export error. */
export async function untilRefused(forge: Forge, lineId: string): Promise<LineState> {
  return await waitFor(`${lineId} to be refused`, async () => {
    const state = await lineState(forge, lineId);
    return state.export_error ? state : undefined;
  });
}
