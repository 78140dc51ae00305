import { MeasuringSlots } from "./measuring-slots";

test("one tenant, and few tenants, leave slots; a tenant's first job gets one of those kept for it", async () => {
  const slots = new MeasuringSlots({ perTenant: 2, total: 3, totalWithFirst: 4 });
  const ends: (() => void)[] = [];
  const started = (tenant: string): boolean => {
    let hasStarted = false;
    void slots.run(tenant, () => {
      hasStarted = true;
      return new Promise<void>((resolve) => {
        ends.push(resolve);
      });
    });
    return hasStarted;
  };
  expect(["a", "a", "a"].map(started)).toEqual([true, true, false]);
  expect(["b", "b", "c", "d"].map(started)).toEqual([true, false, true, false]);
  ends[0]?.();
  await Promise.resolve();
  await Promise.resolve();
  expect(started("d")).toBe(true);
  expect(started("a")).toBe(false);
  expect(
    await new MeasuringSlots({ perTenant: 1, total: 1, totalWithFirst: 1 }).run("a", async () => 1),
  ).toBe(1);
});
