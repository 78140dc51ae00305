import type { FastifyBaseLogger } from "fastify";

type Line = Parameters<FastifyBaseLogger["info"]>;

/**
 * Creates a child logger on first use, because creating it is slow and most requests write no log
 * line.
 */
export function lazyChild(
  parent: FastifyBaseLogger,
  bindings: Record<string, unknown>,
): FastifyBaseLogger {
  let child: FastifyBaseLogger | undefined;
  const log = (): FastifyBaseLogger => {
    child ??= parent.child(bindings);
    return child;
  };
  return {
    level: parent.level,
    silent: () => undefined,
    child: (more) => log().child(more),
    fatal: (...line: Line) => log().fatal(...line),
    error: (...line: Line) => log().error(...line),
    warn: (...line: Line) => log().warn(...line),
    info: (...line: Line) => log().info(...line),
    debug: (...line: Line) => log().debug(...line),
    trace: (...line: Line) => log().trace(...line),
  };
}
