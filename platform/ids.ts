import { typeid } from "typeid-js";

/** Creates an id that sorts by creation time: the prefix and a time-ordered UUID in base 32. */
export const newId = (prefix: string): string => typeid(prefix).toString();
