import pino from "pino";

export type Logger = pino.Logger;

/**
 * Logs only the type, message, stack and code of an error. A Postgres error also contains the
 * refused row, which is user data.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const code = "code" in error ? { code: error.code } : {};
  return { type: error.name, message: error.message, stack: error.stack, ...code };
}

/** Writes one JSON line per event to stdout, or appends it to a file. API keys are redacted. */
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
