-- The queue by requirement group, those that wait for a worker which is being set up and the others. Two indexes
-- with conditions that only the statement in provisioning.ts repeats: matching must not take one of them, because
-- neither is in the queue's order.
create index attempts_not_provisioning on attempts (shape) where state = 'queued' and not is_provisioning;
create index attempts_provisioning on attempts (shape) where state = 'queued' and is_provisioning;
