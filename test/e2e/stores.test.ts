/** The contract of every store. S3 is tested over the network with a real server. */

import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { canHaveS3Server, S3Server } from "../../dev/stack/s3-server";
import { saySilently } from "../../dev/stack/say";
import { LocalStore } from "../../platform/store/local-store";
import { isStoreUnavailable, type ObjectStore } from "../../platform/store/object-store";
import { S3Store } from "../../platform/store/s3-store";
import { slowTest } from "../support/slow";

const home = mkdtempSync(join(tmpdir(), "forge-stores-"));
let s3: S3Server;

beforeAll(async () => {
  if (!canHaveS3Server()) return;
  s3 = await S3Server.start(home, saySilently);
  mkdirSync(join(s3.directory, "forge-data"));
}, 120_000);

afterAll(async () => {
  await s3?.process.stop();
  rmSync(home, { recursive: true, force: true });
});

const s3Store = (bucket = "forge-data"): S3Store =>
  new S3Store({
    bucket,
    endpoint: s3.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: s3.accessKeyId, secretAccessKey: s3.secretAccessKey },
    signedUrlTtlS: 60,
  });

const stores: [string, () => ObjectStore][] = [
  ["the local store", () => new LocalStore(join(home, "local"))],
  ...(canHaveS3Server() ? [["an S3 bucket", s3Store] as [string, () => ObjectStore]] : []),
];

const sha256 = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex");

async function* streamOf(...chunks: (Buffer | string)[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

async function* broken(...chunks: string[]): AsyncGenerator<Buffer> {
  yield* streamOf(...chunks);
  throw new Error("cut");
}

describe.each(stores)("%s", (_name, open) => {
  let store: ObjectStore;
  let folder: string;

  beforeAll(async () => {
    store = open();
    await store.check();
  });

  beforeEach(() => {
    folder = `t-${randomBytes(6).toString("hex")}`;
  });

  test("puts, reads and removes, by ranges too", async () => {
    const key = `${folder}/a b/ü.json`;
    await store.put(key, Buffer.from("older"));
    await store.put(key, Buffer.from("hello world"));
    expect(await store.sizeOf(key)).toBe(11);
    expect(await text(store.read(key))).toBe("hello world");
    expect(await text(store.read(key, { start: 6, end: 8 }))).toBe("wor");
    expect(await text(store.read(key, { start: 10, end: 10 }))).toBe("d");
    expect(await store.measure(key)).toEqual({ sizeBytes: 11, sha256: sha256("hello world") });
    await store.remove(key);
    await store.remove(key);
    expect(await store.sizeOf(key)).toBeUndefined();
    expect(await store.measure(key)).toBeUndefined();
    await expect(text(store.read(key))).rejects.toThrow();
  });

  test("streams empty, small and large files, complete or not at all", async () => {
    const large = Array.from({ length: 20 }, () => randomBytes(1_000_003));
    const whole = Buffer.concat(large);
    expect(await store.putStream(`${folder}/empty`, streamOf())).toEqual({
      sizeBytes: 0,
      sha256: sha256(""),
    });
    expect(await store.putStream(`${folder}/large`, streamOf(...large))).toEqual({
      sizeBytes: whole.length,
      sha256: sha256(whole),
    });
    expect(sha256(await buffer(store.read(`${folder}/large`)))).toBe(sha256(whole));
    const middle = await buffer(
      store.read(`${folder}/large`, { start: 8_388_600, end: 8_388_620 }),
    );
    expect(middle).toEqual(whole.subarray(8_388_600, 8_388_621));
    await expect(store.putStream(`${folder}/cut`, broken("half"))).rejects.toThrow("cut");
    const tooLarge = broken(...Array.from({ length: 20 }, () => "x".repeat(1_000_000)));
    await expect(store.putStream(`${folder}/large`, tooLarge)).rejects.toThrow("cut");
    expect(await store.list(`${folder}/`)).toEqual([
      { path: "empty", sizeBytes: 0 },
      { path: "large", sizeBytes: whole.length },
    ]);
    expect((await store.measure(`${folder}/large`))?.sha256).toBe(sha256(whole));
  });

  test("of many writers of one key, one wins completely", async () => {
    const bodies = Array.from({ length: 20 }, (_, n) => `writer ${n} `.repeat(10_000));
    await Promise.all(bodies.map((body) => store.put(`${folder}/c`, Buffer.from(body))));
    expect(bodies).toContain(await text(store.read(`${folder}/c`)));
    expect(await store.list(`${folder}/`)).toHaveLength(1);
  });

  test("lists in path order, and only below the prefix", async () => {
    for (const path of ["p/b", "p/a/z", "p/B", "p/a.b", "pp/x", "p/é"]) {
      await store.put(`${folder}/${path}`, Buffer.from(path));
    }
    const paths = (await store.list(`${folder}/p/`)).map(({ path }) => path);
    expect(paths).toEqual(["B", "a.b", "a/z", "b", "é"]);
    expect(await store.list(`${folder}/nothing/`)).toEqual([]);
    await store.removeAll(`${folder}/p/`);
    expect(await store.list(`${folder}/p/`)).toEqual([]);
    expect(await store.list(`${folder}/`)).toHaveLength(1);
    await store.removeAll(`${folder}/never/`);
  });

  test("assembles a file from parts, also repeated or interrupted ones, and names it when it is complete", async () => {
    const [from, to] = [`${folder}/up/x`, `${folder}/done/x`];
    await store.append(from, 0, streamOf("hel", "lo"));
    await expect(store.append(from, 5, broken(" wo"))).rejects.toThrow("cut");
    expect(await store.sizeOf(from)).toBe(8);
    await store.append(from, 5, streamOf(" world"));
    await store.append(from, 5, streamOf(" world"));
    expect(await text(store.read(from))).toBe("hello world");
    expect(await text(store.read(from, { start: 3, end: 7 }))).toBe("lo wo");
    expect(await store.measure(from)).toEqual({ sizeBytes: 11, sha256: sha256("hello world") });
    await store.put(to, Buffer.from("older, and longer than the new one"));
    expect(await store.move(from, to)).toBe(true);
    expect(await store.move(from, to)).toBe(false);
    expect(await text(store.read(to))).toBe("hello world");
    expect(await store.measure(from)).toBeUndefined();
    await store.append(`${folder}/up/empty`, 0, streamOf());
    expect(await store.sizeOf(`${folder}/up/empty`)).toBe(0);
    expect(await store.move(`${folder}/up/empty`, `${folder}/done/empty`)).toBe(true);
    expect(await store.sizeOf(`${folder}/done/empty`)).toBe(0);
  });

  test("a large file of parts of all sizes is unchanged", async () => {
    const from = `${folder}/up/large`;
    const sizes = [8_388_608, 8_388_608, 100, 70_000, 8_388_608, 6_000_000, 17];
    const parts = sizes.map((size) => randomBytes(size));
    let offset = 0;
    for (const part of parts) {
      await store.append(from, offset, streamOf(part));
      offset += part.length;
    }
    const whole = Buffer.concat(parts);
    expect(await store.measure(from)).toEqual({ sizeBytes: offset, sha256: sha256(whole) });
    const range = { start: 16_777_210, end: 16_900_000 };
    expect(await buffer(store.read(from, range))).toEqual(
      whole.subarray(range.start, range.end + 1),
    );
    expect(await store.move(from, `${folder}/large`)).toBe(true);
    expect(sha256(await buffer(store.read(`${folder}/large`)))).toBe(sha256(whole));
    expect(await store.list(`${folder}/`)).toEqual([{ path: "large", sizeBytes: whole.length }]);
  });

  test("a log of many small appends stays one text, and is removed at once", async () => {
    const key = `${folder}/log`;
    let written = "";
    for (let line = 0; line < 40; line++) {
      const next = `line ${line} ${"x".repeat(line * 500)}\n`;
      await store.append(key, written.length, streamOf(next));
      written += next;
    }
    expect(await text(store.read(key))).toBe(written);
    await store.remove(key);
    expect(await store.list(`${folder}/`)).toEqual([]);
  });

  slowTest(
    "moves files larger than the store's limit for one copy",
    async () => {
      const block = randomBytes(1_000_000);
      const large = Array.from({ length: 280 }, () => block);
      const put = await store.putStream(`${folder}/from`, streamOf(...large));
      expect(await store.move(`${folder}/from`, `${folder}/to`)).toBe(true);
      expect(await store.measure(`${folder}/to`)).toEqual(put);
      await store.removeAll(`${folder}/`);
    },
    60_000,
  );

  test("moves files that were put whole", async () => {
    await store.put(`${folder}/from`, Buffer.from("x"));
    expect(await store.move(`${folder}/from`, `${folder}/to/there`)).toBe(true);
    expect(await store.list(`${folder}/`)).toEqual([{ path: "to/there", sizeBytes: 1 }]);
  });

  test("a file in place of a folder is a conflict", async () => {
    await store.put(`${folder}/file`, Buffer.from("x"));
    await store.append(`${folder}/up`, 0, streamOf("y"));
    const moved = await store.move(`${folder}/up`, `${folder}/file/below`);
    // If `move` finds the conflict, it must keep the source. Amazon S3 has no folders, so there
    // `move` succeeds.
    if (!moved) expect(await text(store.read(`${folder}/up`))).toBe("y");
    expect(await text(store.read(`${folder}/file`))).toBe("x");
  });

  test.each(["../x", "a/../../x", "/etc/passwd", "a\0b", "a//b", "./a", ""])(
    "%j is not a key",
    async (key) => {
      await expect(store.put(key, Buffer.from(""))).rejects.toThrow("not a store key");
      expect(() => store.read(key)).toThrow("not a store key");
    },
  );
});

test("the local store follows no link that leaves it", async () => {
  const root = join(home, "linked");
  const outside = join(home, "outside");
  for (const directory of [root, outside]) mkdirSync(directory);
  writeFileSync(join(outside, "secret"), "secret");
  symlinkSync(outside, join(root, "folder"));
  symlinkSync(join(outside, "secret"), join(root, "file"));
  symlinkSync(join(outside, "new"), join(root, "dangling"));
  const store = new LocalStore(root);
  await store.check();
  for (const key of ["folder/secret", "file"]) {
    expect(() => store.read(key)).toThrow("leads out");
    expect(await store.sizeOf(key)).toBeUndefined();
    await expect(store.put(key, Buffer.from("x"))).rejects.toThrow("leads out");
  }
  await expect(store.append("dangling", 0, streamOf("x"))).rejects.toThrow();
  await store.put("real/x", Buffer.from("x"));
  symlinkSync(outside, join(root, "real", "link"));
  expect(await store.list("real/")).toEqual([{ path: "x", sizeBytes: 1 }]);
  await store.removeAll("real/");
  expect(readdirSync(outside)).toEqual(["secret"]);
});

(canHaveS3Server() ? describe : describe.skip)("only a bucket", () => {
  test("creates signed URLs to read and to write, for that object and those bytes only", async () => {
    const store = s3Store();
    const body = randomBytes(100_000);
    const expected = { sizeBytes: body.length, sha256: sha256(body) };
    const { url, headers } = await store.signUpload("signed/x", expected);
    const send = (bytes: Buffer, key = "x"): Promise<Response> =>
      fetch(url.replace("/signed/x", `/signed/${key}`), { method: "PUT", headers, body: bytes });
    const other = Buffer.from(body);
    other[17] = (other[17] ?? 0) ^ 1;
    expect((await send(other)).status).toBe(400);
    expect((await send(body, "y")).status).toBe(403);
    expect(await store.sizeOf("signed/x")).toBeUndefined();
    expect((await send(body)).status).toBe(200);
    expect(await store.measure("signed/x")).toEqual(expected);
    const answer = await fetch(await store.signDownload("signed/x"));
    expect(sha256(Buffer.from(await answer.arrayBuffer()))).toBe(expected.sha256);
    expect(url).not.toContain(s3.secretAccessKey);
  });

  test("reports what is wrong, and whether a retry may help", async () => {
    await expect(s3Store("no-such-bucket").check()).rejects.toThrow(
      /"no-such-bucket" does not exist/,
    );
    const wrong = new S3Store({
      bucket: "forge-data",
      endpoint: s3.endpoint,
      region: "us-east-1",
      credentials: { accessKeyId: s3.accessKeyId, secretAccessKey: "wrong-secret" },
      signedUrlTtlS: 60,
    });
    await expect(wrong.check()).rejects.toThrow(/can't be used with these credentials/);
    await s3.process.stop();
    try {
      const error: unknown = await s3Store()
        .put("x", Buffer.from("x"))
        .catch((thrown: unknown) => thrown);
      expect(isStoreUnavailable(error)).toBe(true);
      expect(String(error)).toMatch(/no answer: .*ECONNREFUSED/);
    } finally {
      await s3.start();
    }
    await s3Store().check();
  });
});
