import { typeid } from "typeid-js";

/** A new id that sorts by age: the prefix, and a time-ordered UUID in base 32. */
export const newId = (prefix: string): string => typeid(prefix).toString();
