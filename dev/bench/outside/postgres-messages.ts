/**
 * Reads a stream of messages of Postgres' wire protocol (a byte for the type, four for the length, which
 * counts itself, and the content), however it is cut into chunks.
 *
 * @param hasStartup whether the first message is a client's, which has no type.
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
