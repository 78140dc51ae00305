import { join } from "node:path";
import type { OwnStore } from "../../core/artifacts/dataset-uri";
import type { StoreConfig } from "../config/store";
import { LocalStore } from "./local-store";
import type { ObjectStore } from "./object-store";
import { S3Store } from "./s3-store";

/** Opens the configured store. It connects at first use. */
export function openStore({ directory, bucket }: StoreConfig): ObjectStore {
  return bucket ? new S3Store(bucket) : new LocalStore(directory);
}

/** Describes the URIs that may name artifacts in this store. */
export function ownStoreOf({ directory, bucket }: StoreConfig): OwnStore {
  return {
    artifactsRoot: join(directory, "artifacts"),
    bucketUri: bucket && `${bucket.scheme}://${bucket.bucket}`,
  };
}
