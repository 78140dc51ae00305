import type { FastifyBaseLogger } from "fastify";

type Line = Parameters<FastifyBaseLogger["info"]>;

/**
 * A request's logger, which says its id on each line, made when it first says something: most requests
 * of a fleet say nothing, and making one costs as much as the half of a heartbeat.
 */
export function lazyChild(
  parent: FastifyBaseLogger,
  bindings: Record<string, unknown>,
): FastifyBaseLogger {
  let made: FastifyBaseLogger | undefined;
  const log = (): FastifyBaseLogger => {
    made ??= parent.child(bindings);
    return made;
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
