import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { LocalStore } from "../../platform/store/local-store";
import { FileExporter } from "./file-exporter";
import type { DueLine } from "./usage-exporter";

const home = mkdtempSync(join(tmpdir(), "forge-export-"));
const store = new LocalStore(join(home, "store"));

afterAll(() => rmSync(home, { recursive: true, force: true }));

const line = (lineId: string): DueLine => ({
  line_id: lineId,
  user_id: "acme",
  customer_id: null,
  month: "2026-11",
  job_id: null,
  job_type: null,
  cost_usd: "0.020000",
  gpu_hours: 0,
  tokens: 0,
  gb_months: 1.5,
  created_at: new Date("2026-11-30T23:59:59.999Z"),
  tries: 1,
  age_s: 0,
  in_doubt_s: null,
});

test("a line is retried soon if the store is unavailable", async () => {
  expect(await new FileExporter(store, "csv").deliver(line("a"))).toMatchObject({
    accepted: false,
    retry: "soon",
    reason: expect.stringMatching(/^unavailable: /),
  });
});

test("repeated and concurrent deliveries of a line write one file, in the folder of its day", async () => {
  await store.check();
  const deliveries = [1, 2, 3].map(() => new FileExporter(store, "csv").deliver(line("acme:x")));
  expect(await Promise.all(deliveries)).toEqual([1, 2, 3].map(() => ({ accepted: true })));
  expect(await store.list("billing/exports/")).toMatchObject([{ path: "2026-11-30/acme%3Ax.csv" }]);
  expect(await text(store.read("billing/exports/2026-11-30/acme%3Ax.csv"))).toBe(
    "line_id,user_id,customer_id,month,job_id,job_type,cost_usd,gpu_hours,tokens,gb_months,created_at\r\n" +
      "acme:x,acme,,2026-11,,,0.020000,0,0,1.5,2026-11-30T23:59:59.999Z\r\n",
  );
});

test.each(["../../up", "a/b", "a\0b", "."])("%j stays in its folder", async (lineId) => {
  expect(await new FileExporter(store, "json").deliver(line(lineId))).toEqual({ accepted: true });
  const key = `billing/exports/2026-11-30/${encodeURIComponent(lineId)}.json`;
  expect(JSON.parse(await text(store.read(key)))).toMatchObject({ line_id: lineId });
});
