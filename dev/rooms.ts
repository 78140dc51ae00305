import rooms from "./rooms.json";

/** Folders of what runs in a server. */
export const SERVER_ROOMS = rooms.server;
