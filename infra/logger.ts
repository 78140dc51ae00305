import pino from "pino";

export type Logger = pino.Logger;

/** One JSON line an event on stdout. Keys never reach a log, however they were sent. */
export function createLogger(level: string): Logger {
  return pino({
    level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: {
      paths: ["*.authorization", '*["x-service-api-key"]', "req.headers", "*.api_key", "*.key"],
      censor: "[hidden]",
    },
  });
}
