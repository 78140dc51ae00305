import { z } from "zod";
import { timestamp } from "../../core/timestamp";
import type { UserRow } from "../../services/accounts/users";

export const userFields = {
  user_id: z.string(),
  name: z.string(),
  payment_customer_id: z.string().nullable().describe("customer id at the payment processor"),
  created_at: timestamp,
};

export const userSchema = z.object(userFields).meta({ id: "User" });

export const presentUser = (user: UserRow): z.infer<typeof userSchema> => ({
  user_id: user.user_id,
  name: user.name,
  payment_customer_id: user.payment_customer_id,
  created_at: user.created_at.toISOString(),
});
