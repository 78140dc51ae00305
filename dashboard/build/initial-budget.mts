import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";

/** Fails the build if the entry chunk and its static imports exceed this size when gzipped. */
export function initialBudget(maxBytes: number): Plugin {
  return {
    name: "forge-initial-budget",
    apply: "build",
    generateBundle(_options, bundle) {
      const sizes = new Map<string, number>();
      const add = (fileName: string): void => {
        const chunk = bundle[fileName];
        if (chunk?.type !== "chunk" || sizes.has(fileName)) return;
        sizes.set(fileName, gzipSync(chunk.code).length);
        for (const imported of chunk.imports) add(imported);
      };
      for (const chunk of Object.values(bundle)) {
        if (chunk.type === "chunk" && chunk.isEntry) add(chunk.fileName);
      }
      const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
      const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;
      this.info(`initial JavaScript: ${kilobytes(total)} gzipped of ${kilobytes(maxBytes)}`);
      if (total <= maxBytes) return;
      const parts = [...sizes].map(([name, size]) => `${name}: ${kilobytes(size)}`).join("\n");
      this.error(
        `initial JavaScript is ${kilobytes(total)} gzipped, over the budget of ${kilobytes(maxBytes)}:\n${parts}`,
      );
    },
  };
}
