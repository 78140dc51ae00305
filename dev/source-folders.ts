import folders from "./source-folders.json";

/** Folders with the sources of the server. */
export const SERVER_FOLDERS = folders.server;
