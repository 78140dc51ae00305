import { all, type Queryable } from "../../platform/postgres/pool";

/** A model server to which the proxy may send a request. */
interface ServingTarget {
  /** As reported by its worker. */
  inference_url: string;
  /** Authenticates requests to the server; null if the worker got no token. */
  token: string | null;
  /** The address that its worker's requests come from. */
  worker_address: string | null;
  /** Hosts allowed in `inference_url`: `serving_hosts` of the worker's key, and its SSH host. */
  hosts: string[];
}

/**
 * The deployment's healthy servers. Servers that their worker listed in its last heartbeat come
 * first. Otherwise, the order is random.
 */
export async function listTargets(db: Queryable, deploymentId: string) {
  return await all<ServingTarget>(
    db,
    `select p.inference_url, p.token, w.address as worker_address,
            array_remove(coalesce(k.serving_hosts, '{}') || w.ssh_host, null) as hosts
     from placements p join workers w using (worker_id)
     left join api_keys k on k.key_id = w.bound_key_id
     where p.deployment_id = $1 and p.state = 'serving' and p.healthy and p.inference_url is not null
     order by p.missing_since is not null, random()`,
    [deploymentId],
  );
}
