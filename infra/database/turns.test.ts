import { Unavailable } from "../../core/errors";
import { databaseTurnsOf } from "./turns";

test("while one tenant's statements hang, another's go on, and its own are refused in time", async () => {
  const { user, worker } = databaseTurnsOf(20, 100);
  let release: () => void = () => undefined;
  const frozen = new Promise<void>((resolve) => {
    release = resolve;
  });
  const hanging = Array.from({ length: 50 }, () => user.take("slow", () => frozen));
  const outcomes = Promise.allSettled(hanging);
  expect(await user.take("other", async () => "answered")).toBe("answered");
  expect(await worker.take("slow", async () => "of its worker")).toBe("of its worker");
  await expect(user.take("slow", async () => "late")).rejects.toBeInstanceOf(Unavailable);
  release();
  const refused = (await outcomes).filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(50 - 6);
  expect(await user.take("slow", async () => "again")).toBe("again");
});
