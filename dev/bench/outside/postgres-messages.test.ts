import { splitMessages } from "./postgres-messages";

const message = (type: string, content: string): Buffer => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(4 + content.length);
  return Buffer.concat([Buffer.from(type), length, Buffer.from(content)]);
};

test.each([1, 3, 1_000])(
  "reads messages from chunks of %i bytes, after the startup message",
  (size) => {
    const bytes = Buffer.concat([
      message("", "user"),
      message("Q", "select 1\0"),
      message("S", ""),
    ]);
    const seen: string[] = [];
    const read = splitMessages({ hasStartup: true }, (type, content) => {
      seen.push(`${type} ${content.toString()}`);
    });
    for (let at = 0; at < bytes.length; at += size) read(bytes.subarray(at, at + size));
    expect(seen).toEqual(["Q select 1\0", "S "]);
  },
);
