import { isIP } from "node:net";
import { bucketLocationOf } from "../../core/artifacts/dataset-uri";
import type { TenantBucket } from "../config/store";
import type { AddressPolicy } from "../net/address-policy";
import { ConnectionRefused } from "../net/refused";
import type { ObjectStore } from "./object-store";
import { S3Store } from "./s3-store";

/** An object, or a folder of objects, in a tenant's own bucket. */
export interface TenantObject {
  store: ObjectStore;
  /** A key that ends with a slash is a folder. */
  key: string;
}

/**
 * The tenants' own buckets, read with credentials that the operator configured. A tenant may
 * control the DNS of its endpoint, so connections to internal addresses are refused.
 */
export class TenantStores {
  private readonly opened = new Map<TenantBucket, ObjectStore>();

  constructor(
    private readonly buckets: Record<string, TenantBucket[]>,
    private readonly addresses: AddressPolicy,
  ) {}

  /**
   * Finds the object of a tenant's dataset_uri; undefined if its bucket is not configured.
   * @throws ConnectionRefused if the bucket's endpoint is an IP address that is not allowed.
   */
  find(userId: string, uri: string): TenantObject | undefined {
    const place = bucketLocationOf(uri);
    const known = (this.buckets[userId] ?? []).find(
      (one) => one.scheme === place?.scheme && one.bucket === place.bucket,
    );
    return known && place ? { store: this.open(known), key: place.key } : undefined;
  }

  private open(bucket: TenantBucket): ObjectStore {
    let store = this.opened.get(bucket);
    if (!store) {
      this.requireAddress(bucket.endpoint);
      store = new S3Store({ ...bucket, lookup: this.addresses.lookup, signedUrlTtlS: 60 });
      this.opened.set(bucket, store);
    }
    return store;
  }

  /**
   * Checks the endpoint if it is an IP address. `lookup` checks host names, but is not called for
   * an IP address.
   */
  private requireAddress(endpoint: string | undefined): void {
    if (endpoint === undefined) return;
    const host = new URL(endpoint).hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) === 0 || this.addresses.allows(host)) return;
    throw new ConnectionRefused(`the operator does not allow connections to ${host}`);
  }
}
