import { setFlagsFromString } from "node:v8";

/**
 * Must be imported first, while the heap is small. A server that mostly holds waiting requests
 * allocates little at a time. V8's defaults would reserve 32 MB for new objects.
 */
setFlagsFromString("--semi-space-growth-factor=1");

/**
 * Call after a server has started. Lets the old generation grow by 40 % between collections instead
 * of to twice the live size. With 10 %, collections paused the process for 70 ms at a time under
 * load. During the start, while modules fill the heap, this would cost a fifth of the CPU time.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=40");
}
