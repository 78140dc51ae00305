import type { Listing, ListOptions } from "../listing.ts";
import type { CreateOptions, OfUser, RequestOptions, TimeSpan } from "../options.ts";
import { create, get, path, post, remove } from "../request.ts";
import type { Fleet, Operations, Worker, WorkerDetail, WorkerSamples } from "../schema.ts";
import { Resource } from "./resource.ts";

type SshForm = Extract<Operations["registerWorker"]["body"], { ssh_host: unknown }>;

/** A machine to set up over SSH. Its address and user are separate parameters. */
export type Machine = Omit<SshForm, "ssh_host" | "ssh_user" | "plan">;

export interface RegisteredWorker {
  worker_id: string;
  status: Worker["status"];
  message: string;
}

/** What `register` would do to a machine. */
export type BootstrapPlan = Operations["registerWorker"]["answer"];

export interface WorkerFilters extends ListOptions, OfUser {
  status?: Worker["status"] | readonly Worker["status"][] | undefined;
  /** A part of the GPU's name. */
  gpu?: string | undefined;
  /** A part of an id or tag. */
  q?: string | undefined;
}

/** `client.workers`. */
export class Workers extends Resource {
  /** Lists workers, newest first. `limit`: maximum number in total. */
  list(filters: WorkerFilters = {}, options?: RequestOptions): Listing<Worker> {
    return this.listing({ path: "/api/workers", name: "workers", query: filters, options });
  }

  /** Counts workers and GPUs, and reads their utilisation. */
  async summary(query: OfUser = {}, options?: RequestOptions): Promise<Fleet> {
    return await this.transport.json(get("/api/fleet", query), options);
  }

  /** Reads a worker's utilisation and memory over time. Default: the last day. */
  async samples(
    workerId: string,
    query: TimeSpan = {},
    options?: RequestOptions,
  ): Promise<WorkerSamples> {
    return await this.transport.json(get(path`/api/workers/${workerId}/samples`, query), options);
  }

  /** Reads a worker with the progress of its set-up. */
  async get(workerId: string, options?: RequestOptions): Promise<WorkerDetail> {
    return await this.transport.json(get(path`/api/workers/${workerId}`), options);
  }

  /** Lets the server set up a machine over SSH. */
  async register(
    sshHost: string,
    sshUser: string,
    machine: Machine,
    options?: CreateOptions,
  ): Promise<RegisteredWorker> {
    const body = { ssh_host: sshHost, ssh_user: sshUser, ...machine };
    return await this.transport.json(create("/api/workers/register", body), options);
  }

  /** Returns what `register` would do to the machine, without doing it. */
  async plan(
    sshHost: string,
    sshUser: string,
    machine: Machine,
    options?: RequestOptions,
  ): Promise<BootstrapPlan> {
    const body = { ssh_host: sshHost, ssh_user: sshUser, ...machine, plan: true };
    return await this.transport.json(post("/api/workers/register", body), options);
  }

  /** Sets up a machine again. A new `ssh_host_key` replaces the trusted one. */
  async bootstrap(
    workerId: string,
    changes: Operations["bootstrapWorker"]["body"] = {},
    options?: RequestOptions,
  ): Promise<WorkerDetail> {
    const request = post(path`/api/workers/${workerId}/bootstrap`, changes);
    return await this.transport.json(request, options);
  }

  /** Drains a worker: it finishes its job and accepts no other. */
  async drain(workerId: string, options?: RequestOptions): Promise<Worker> {
    return await this.transport.json(post(path`/api/workers/${workerId}/drain`), options);
  }

  /** Lets a draining worker accept jobs again. If its agent has ended, restart the agent. */
  async undrain(workerId: string, options?: RequestOptions): Promise<Worker> {
    return await this.transport.json(post(path`/api/workers/${workerId}/undrain`), options);
  }

  /** Puts a worker in `error` back into service. For admins. */
  async reset(workerId: string, options?: RequestOptions): Promise<Worker> {
    return await this.transport.json(post(path`/api/workers/${workerId}/reset`), options);
  }

  /** Decommissions a worker. */
  async remove(
    workerId: string,
    options?: RequestOptions,
  ): Promise<Operations["decommissionWorker"]["answer"]> {
    return await this.transport.json(remove(path`/api/workers/${workerId}`), options);
  }
}
