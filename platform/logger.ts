import pino from "pino";

export type Logger = pino.Logger;

/**
 * An error without the rest of what it carries: Postgres adds the row that it refused, which is a
 * user's data.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const code = "code" in error ? { code: error.code } : {};
  return { type: error.name, message: error.message, stack: error.stack, ...code };
}

/** One JSON line an event, on stdout or at the end of a file. Keys never reach a log, however they were sent. */
export function createLogger(level: string, file?: string): Logger {
  const options: pino.LoggerOptions = {
    level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: describeError },
    formatters: { level: (label) => ({ level: label }) },
    redact: {
      paths: ["*.authorization", '*["x-service-api-key"]', "req.headers", "*.api_key", "*.key"],
      censor: "[hidden]",
    },
  };
  return file === undefined
    ? pino(options)
    : pino(options, pino.destination({ dest: file, mkdir: true, mode: 0o600 }));
}
