-- An artifact's id is unique within its tenant, not over all tenants: else one tenant could take an id that
-- another will use, or find out that it is used. `artifact_id` stays the key over all tenants. It names the
-- folder in the store, the deployment and its workflow, and the server makes it. `given_id` is the id that a
-- worker chose instead, by which the tenant knows the artifact; null: the tenant knows it by `artifact_id`.
-- Rows from before have the id that their worker chose as `artifact_id`, and keep it with their folder.
alter table artifacts add column given_id text;

-- The id by which the placement's worker knows the deployment; null: `deployment_id`.
alter table placements add column served_as text;
