import { presentBillingRecord, withAccruedCost } from "../../core/billing/record";
import type { BillingRecord } from "../../core/billing/record-schema";
import type { BillingRow } from "../../services/billing/billing-records";

/** Presents a billing record. An accruing record shows its costs so far. */
export const presentRecord = (row: BillingRow): BillingRecord =>
  presentBillingRecord(withAccruedCost(row));
