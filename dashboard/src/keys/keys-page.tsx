import type { ApiKey } from "@forge/sdk";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { given } from "../app/search-params";
import { Button } from "../ui/button";
import { Empty } from "../ui/empty";
import { Checkbox } from "../ui/field";
import { useHotkeys } from "../ui/hotkeys";
import { QueryTable } from "../ui/list-table";
import { Page } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { CreateKeyDialog } from "./create-key-dialog";
import { keyColumns } from "./key-columns";
import { stateOf } from "./key-state";
import { RevokeKeyDialog } from "./revoke-key-dialog";
import type { KeyTab } from "./search";
import { useKeys, useOwnKeyIds } from "./use-keys";

const route = getRouteApi("/keys");

export function KeysPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const keys = useKeys(false);
  const sessions = useKeys(true);
  const own = useOwnKeyIds(sessions.data);
  const [isCreating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey>();
  useHotkeys([{ keys: "n", what: "Create a key", run: () => setCreating(true) }]);
  const all = [...(keys.data ?? []), ...(sessions.data ?? [])];
  const shown = (list: ApiKey[] | undefined): ApiKey[] | undefined =>
    search.ended ? list : list?.filter((key) => stateOf(key, Date.now()) === "active");
  const listOf = (query: typeof keys, isSessions: boolean) => (
    <QueryTable
      label={isSessions ? "Sessions" : "API keys"}
      columns={keyColumns({
        own,
        nameOf: (keyId) => all.find(({ key_id }) => key_id === keyId)?.name,
        onRevoke: setRevoking,
        isSessions,
      })}
      rows={shown(query.data)}
      error={query.error}
      retry={query.refetch}
      rowId={({ key_id }) => key_id}
      empty={isSessions ? <NoSessions /> : <NoKeys />}
    />
  );
  return (
    <Page
      title="API keys"
      shows="own"
      actions={
        <Button
          kind="primary"
          icon={<Plus size={14} />}
          hotkey="n"
          onClick={() => setCreating(true)}
        >
          Create a key
        </Button>
      }
    >
      <Tabs<KeyTab>
        value={search.tab ?? "keys"}
        onChange={(tab) => navigate({ to: "/keys", search: { ...search, tab }, replace: true })}
        tabs={[
          {
            id: "keys",
            title: "Keys",
            count: shown(keys.data)?.length,
            content: listOf(keys, false),
          },
          {
            id: "sessions",
            title: "Sessions",
            count: shown(sessions.data)?.length,
            content: listOf(sessions, true),
          },
        ]}
      />
      <div className="quiet">
        <Checkbox
          label="Show revoked and expired ones"
          checked={search.ended === "yes"}
          onChange={({ target }) =>
            navigate({
              to: "/keys",
              search: given({
                tab: search.tab,
                ended: target.checked ? ("yes" as const) : undefined,
              }),
              replace: true,
            })
          }
        />
      </div>
      <CreateKeyDialog open={isCreating} onClose={() => setCreating(false)} />
      <RevokeKeyDialog
        apiKey={revoking}
        isOwn={revoking !== undefined && own.includes(revoking.key_id)}
        onClose={() => setRevoking(undefined)}
      >
        {revoking ? revokedWith(all, revoking.key_id) : []}
      </RevokeKeyDialog>
    </Page>
  );
}

/**
 * Returns the live keys and sessions that were created with a key, directly or through other keys.
 * They are revoked together with the key.
 */
function revokedWith(all: readonly ApiKey[], keyId: string): ApiKey[] {
  const made = all.filter(({ made_by }) => made_by === keyId);
  const live = made.filter((key) => stateOf(key, Date.now()) === "active");
  return [...live, ...made.flatMap(({ key_id }) => revokedWith(all, key_id))];
}

const NoKeys = () => (
  <Empty title="Keys that you create appear here." command="forge keys create ci">
    A key for each program, so that each can be revoked by itself:
  </Empty>
);

const NoSessions = () => (
  <Empty title="Each sign-in is a session of 12 hours.">
    None is open. A session ends with the sign-out, or with the key that was pasted.
  </Empty>
);
