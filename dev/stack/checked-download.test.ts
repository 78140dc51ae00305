import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { downloadChecked } from "./checked-download";

const CONTENT = "an archive";
const SHA256 = createHash("sha256").update(CONTENT).digest("hex");

let server: Server;
let url: string;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "forge-download-"));
  server = createServer((request, response) => {
    response.statusCode = request.url === "/archive" ? 200 : 404;
    response.end(CONTENT);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

test("a file with the right checksum is written", async () => {
  await downloadChecked(`${url}/archive`, SHA256, join(folder, "good"));
  expect(readFileSync(join(folder, "good"), "utf8")).toBe(CONTENT);
});

test("a file with another checksum and an error page are refused before they are written", async () => {
  const target = join(folder, "bad");
  await expect(downloadChecked(`${url}/archive`, "0".repeat(64), target)).rejects.toThrow(
    `its SHA-256 is ${SHA256}`,
  );
  await expect(downloadChecked(`${url}/other`, SHA256, target)).rejects.toThrow("HTTP 404");
  expect(existsSync(target)).toBe(false);
});
