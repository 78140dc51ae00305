import type { Listing, ListOptions } from "../listing.ts";
import type { CreateOptions, RequestOptions, TimeSpan } from "../options.ts";
import { create, get, path, post } from "../request.ts";
import type { Fleet, Operations, Worker, WorkerDetail, WorkerSamples } from "../schema.ts";
import { Resource } from "./resource.ts";

type SshForm = Extract<Operations["registerWorker"]["body"], { ssh_host: unknown }>;

/** A machine to be set up over SSH, beside its address. */
export type Machine = Omit<SshForm, "ssh_host" | "ssh_user" | "plan">;

export interface RegisteredWorker {
  worker_id: string;
  status: Worker["status"];
  message: string;
}

/** What would be done to a machine; nothing was done. */
export type BootstrapPlan = Operations["registerWorker"]["answer"];

export interface WorkerFilters extends ListOptions {
  status?: Worker["status"] | readonly Worker["status"][] | undefined;
  /** A part of the GPU's name. */
  gpu?: string | undefined;
  /** A part of an id or of a tag. */
  q?: string | undefined;
  user_id?: string | undefined;
}

/** `client.workers`. */
export class Workers extends Resource {
  /** Workers, newest first; `limit` is how many in all. */
  list(filters: WorkerFilters = {}, options?: RequestOptions): Listing<Worker> {
    return this.listing({ path: "/api/workers", name: "workers", query: filters, options });
  }

  /** How many workers and GPUs there are, and how busy they are. */
  async summary(
    query: { user_id?: string | undefined } = {},
    options?: RequestOptions,
  ): Promise<Fleet> {
    return await this.transport.json(get("/api/fleet", query), options);
  }

  /** Its utilisation and memory over the last day. */
  async samples(
    workerId: string,
    query: TimeSpan = {},
    options?: RequestOptions,
  ): Promise<WorkerSamples> {
    return await this.transport.json(get(path`/api/workers/${workerId}/samples`, query), options);
  }

  /** A worker, and how far its setting up has come. */
  async get(workerId: string, options?: RequestOptions): Promise<WorkerDetail> {
    return await this.transport.json(get(path`/api/workers/${workerId}`), options);
  }

  /** Has a machine set up over SSH. */
  async register(
    sshHost: string,
    sshUser: string,
    machine: Machine,
    options?: CreateOptions,
  ): Promise<RegisteredWorker> {
    const body = { ssh_host: sshHost, ssh_user: sshUser, ...machine };
    return await this.transport.json(create("/api/workers/register", body), options);
  }

  /** What `register` would do to the machine, and nothing of it. */
  async plan(
    sshHost: string,
    sshUser: string,
    machine: Machine,
    options?: RequestOptions,
  ): Promise<BootstrapPlan> {
    const body = { ssh_host: sshHost, ssh_user: sshUser, ...machine, plan: true };
    return await this.transport.json(post("/api/workers/register", body), options);
  }

  /** Sets a machine up again; a new `ssh_host_key` is trusted from now on. */
  async bootstrap(
    workerId: string,
    changes: Operations["bootstrapWorker"]["body"] = {},
    options?: RequestOptions,
  ): Promise<WorkerDetail> {
    const request = post(path`/api/workers/${workerId}/bootstrap`, changes);
    return await this.transport.json(request, options);
  }

  /** Lets it finish its job, and take no other. */
  async drain(workerId: string, options?: RequestOptions): Promise<Worker> {
    return await this.transport.json(post(path`/api/workers/${workerId}/drain`), options);
  }

  /** Lets a draining one take jobs again; an agent that has left must be started again. */
  async undrain(workerId: string, options?: RequestOptions): Promise<Worker> {
    return await this.transport.json(post(path`/api/workers/${workerId}/undrain`), options);
  }

  /** Puts one that is in error back into service; for admins. */
  async reset(workerId: string, options?: RequestOptions): Promise<Worker> {
    return await this.transport.json(post(path`/api/workers/${workerId}/reset`), options);
  }

  /** Decommissions it. */
  async remove(
    workerId: string,
    options?: RequestOptions,
  ): Promise<Operations["decommissionWorker"]["answer"]> {
    const request = { method: "DELETE", path: path`/api/workers/${workerId}` };
    return await this.transport.json(request, options);
  }
}
