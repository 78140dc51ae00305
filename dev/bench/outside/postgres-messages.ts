/**
 * Parses a stream of messages of Postgres's wire protocol, in chunks of any size. A message has a
 * type (one byte), a length (four bytes) and a content. The length includes its own four bytes.
 *
 * @param hasStartup whether the first message is a client's startup message, which has no type.
 */
export function splitMessages(
  { hasStartup }: { hasStartup: boolean },
  onMessage: (type: string, content: Buffer) => void,
): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let typeLength = hasStartup ? 0 : 1;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= typeLength + 4) {
      const end = typeLength + rest.readUInt32BE(typeLength);
      if (rest.length < end) return;
      if (typeLength === 1) onMessage(rest.toString("latin1", 0, 1), rest.subarray(5, end));
      rest = rest.subarray(end);
      typeLength = 1;
    }
  };
}
