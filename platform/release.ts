/** The version of the server. The clients, the agent and package.json have the same version. */
export const RELEASE = "0.2.0";

/**
 * The oldest supported client release: one minor version back, so that servers and clients need not
 * be upgraded on the same day. Every response carries it. The server does not refuse older clients.
 */
export const MIN_CLIENT_RELEASE = "0.1.0";
