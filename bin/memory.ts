import { setFlagsFromString } from "node:v8";

/**
 * Imported before anything else, while the heap is small. A server that mostly parks requests allocates
 * little at a time: V8's defaults would keep 32 MB for new objects and let the old ones grow to twice
 * what is alive. With a thousand parked workers this is 190 MB or 140, at no measurable cost in time.
 */
setFlagsFromString("--semi-space-growth-factor=1");
setFlagsFromString("--heap-growing-percent=10");
