import { given, readOneOf, type Search } from "../app/search-params";

const KEY_TABS = ["keys", "sessions"] as const;
export type KeyTab = (typeof KEY_TABS)[number];

export interface KeysSearch {
  tab?: KeyTab;
  /** Also shows revoked and expired keys. */
  ended?: "yes";
}

export const readKeysSearch = (search: Search): KeysSearch =>
  given({
    tab: readOneOf(search, "tab", KEY_TABS),
    ended: readOneOf(search, "ended", ["yes"] as const),
  });
