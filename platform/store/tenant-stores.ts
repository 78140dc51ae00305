import { isIP } from "node:net";
import { bucketPlaceOf } from "../../core/artifacts/dataset-uri";
import type { TenantBucket } from "../config/store";
import type { AddressPolicy } from "../net/address-policy";
import { ConnectionRefused } from "../net/refused";
import type { ObjectStore } from "./object-store";
import { S3Store } from "./s3-store";

/** An object, or a folder of them, in a tenant's own bucket. */
export interface TenantPlace {
  store: ObjectStore;
  /** Ends with a slash: a folder. */
  key: string;
}

/**
 * Buckets of the tenants' own, read with what the operator was given for them. Their addresses are not
 * ours to choose, so no name of theirs may lead to this network.
 */
export class TenantStores {
  private readonly opened = new Map<TenantBucket, ObjectStore>();

  constructor(
    private readonly buckets: Record<string, TenantBucket[]>,
    private readonly addresses: AddressPolicy,
  ) {}

  /**
   * Where a dataset_uri of a tenant leads, if its bucket is known to us.
   *
   * @throws ConnectionRefused when its address may not be connected to.
   */
  find(userId: string, uri: string): TenantPlace | undefined {
    const place = bucketPlaceOf(uri);
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

  /** A number is not looked up, so that it is judged here. */
  private requireAddress(endpoint: string | undefined): void {
    if (endpoint === undefined) return;
    const host = new URL(endpoint).hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) === 0 || this.addresses.allows(host)) return;
    throw new ConnectionRefused(`the operator does not allow connections to ${host}`);
  }
}
