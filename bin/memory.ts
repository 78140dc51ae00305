import { setFlagsFromString } from "node:v8";

/**
 * Imported before anything else, while the heap is small. A server that mostly parks requests allocates
 * little at a time: V8's defaults would keep 32 MB for new objects.
 */
setFlagsFromString("--semi-space-growth-factor=1");

/**
 * Call after a server has started. Lets the old generation grow by 10 % between collections instead of to
 * twice the live size: 140 MB instead of 190 with a thousand waiting polls, at no measurable cost in time.
 * During the start, while modules fill the heap, it would cost a fifth of the CPU time.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=10");
}
