/** Folders of what runs in a server; dev/forge.mjs, which runs before anything is built, has a list of its own. */
export const SERVER_ROOMS = [
  "core",
  "infra",
  "workflows",
  "activities",
  "api",
  "agent-bridge",
  "bin",
];
