-- Deployments that may have more servers than they must have, by id: a sweep looks at them a page at a time.
create index deployments_growing on deployments (deployment_id)
  where status = 'active' and max_replicas > min_replicas;

-- A deployment's servers of now, without those of its past.
create index placements_live on placements (deployment_id) where state <> 'ended';
