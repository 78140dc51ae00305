/** This release of the server; clients, agent and package.json of the same release say the same. */
export const RELEASE = "0.2.0";

/**
 * The oldest release of a client that is served as it expects: one minor version back, so that servers
 * and clients need not be renewed on one day. Told in every answer; nobody is refused for his version.
 */
export const MIN_CLIENT_RELEASE = "0.1.0";
