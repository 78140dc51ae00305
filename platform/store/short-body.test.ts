import { createHash } from "node:crypto";
import { createServer } from "node:net";
import { S3Store } from "./s3-store";

const WHOLE = Buffer.from(Array.from({ length: 1000 }, (_, n) => n % 251));
const AT_ONCE = 400;

/** The answer of a proxy. It announces no length, and its body ends early, without an error. */
function answerTo(request: string): Buffer {
  const head = (status: string, ...more: string[]): Buffer =>
    Buffer.from(
      [`HTTP/1.1 ${status}`, 'ETag: "x"', "Connection: close", ...more, "", ""].join("\r\n"),
    );
  if (request.startsWith("HEAD")) return head("200 OK", `Content-Length: ${WHOLE.length}`);
  const start = Number(/^range: bytes=(\d+)-/im.exec(request)?.[1] ?? 0);
  const range = `Content-Range: bytes ${start}-${WHOLE.length - 1}/${WHOLE.length}`;
  const body = WHOLE.subarray(start, start + AT_ONCE);
  return Buffer.concat([start > 0 ? head("206 Partial Content", range) : head("200 OK"), body]);
}

test("a body that ends early does not pass for the whole object", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (data) => socket.end(answerTo(data.toString("latin1"))));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as { port: number };
  const store = new S3Store({
    bucket: "b",
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
    signedUrlTtlS: 60,
  });
  try {
    expect(await store.measure("a/x")).toEqual({
      sizeBytes: WHOLE.length,
      sha256: createHash("sha256").update(WHOLE).digest("hex"),
    });
  } finally {
    server.close();
  }
});
