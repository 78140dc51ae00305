import type { ApiKey } from "@forge/sdk";
import { Button } from "../ui/button";
import { cx } from "../ui/cx";
import { ABSENT, formatNumber } from "../ui/format";
import type { Column } from "../ui/table";
import { Tag } from "../ui/tag";
import { ageColumn, Time } from "../ui/time";
import styles from "./key-columns.module.css";
import { stateOf } from "./key-state";

interface Options {
  /** The id of the session's own key and, if known, the id of the key used to sign in. */
  own: readonly string[];
  /** Returns the name of the key with this id; undefined if the page lists no such key. */
  nameOf: (keyId: string) => string | undefined;
  onRevoke: (key: ApiKey) => void;
  isSessions: boolean;
}

export function keyColumns({
  own,
  nameOf,
  onRevoke,
  isSessions,
}: Options): readonly Column<ApiKey>[] {
  const columns: (Column<ApiKey> | false)[] = [
    {
      id: "name",
      title: isSessions ? "Session of" : "Name",
      cell: (key) => <Name apiKey={key} isOwn={own.includes(key.key_id)} />,
    },
    {
      id: "scope",
      title: "Scope",
      width: "148px",
      hideBelow: "phone",
      cell: ({ scope, workers }) =>
        workers === null ? scope : `${scope}, for ${formatNumber(workers)}`,
    },
    {
      id: "last4",
      title: "Ends with",
      width: "88px",
      hideBelow: "tablet",
      cell: ({ last4 }) => <code>…{last4}</code>,
    },
    !isSessions && {
      id: "madeBy",
      title: "Made by",
      width: "132px",
      hideBelow: "laptop",
      cell: ({ made_by }) => (
        <span className="quiet" title={made_by ?? undefined}>
          {made_by === null ? ABSENT : (nameOf(made_by) ?? "a key that is gone")}
        </span>
      ),
    },
    ageColumn("Created", { hideBelow: "laptop" }),
    {
      id: "expires",
      title: "Expires",
      width: "104px",
      align: "right",
      hideBelow: "tablet",
      cell: ({ expires_at }) => (expires_at === null ? "never" : <Time at={expires_at} />),
    },
    {
      id: "used",
      title: "Last used",
      width: "104px",
      align: "right",
      hideBelow: "phone",
      cell: ({ last_used_at }) => (last_used_at === null ? "never" : <Time at={last_used_at} />),
    },
    {
      id: "revoke",
      title: "",
      width: "88px",
      align: "right",
      cell: (key) =>
        stateOf(key, Date.now()) === "active" && (
          <Button
            size="small"
            kind="ghost"
            aria-label={`${isSessions ? "End the session" : "Revoke"} ${key.name} …${key.last4}`}
            onClick={() => onRevoke(key)}
          >
            {isSessions ? "End" : "Revoke"}
          </Button>
        ),
    },
  ];
  return columns.filter((column) => column !== false);
}

function Name({ apiKey, isOwn }: { apiKey: ApiKey; isOwn: boolean }) {
  const state = stateOf(apiKey, Date.now());
  return (
    <span className={styles.name}>
      <span className={state === "active" ? styles.text : styles.ended} title={apiKey.key_id}>
        {apiKey.name}
      </span>
      {isOwn && <Tag>this sign-in</Tag>}
      {state !== "active" && <Tag>{state}</Tag>}
      <span className={cx("only-phone", styles.below)}>
        {apiKey.scope} …{apiKey.last4}, {apiKey.last_used_at ? "used " : "never used"}
        {apiKey.last_used_at && <Time at={apiKey.last_used_at} />}
      </span>
    </span>
  );
}
