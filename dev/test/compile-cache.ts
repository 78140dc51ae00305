import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import Module from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import vm from "node:vm";

/**
 * Preloaded (`node -r`) into the processes that tests start: keeps the compiled form of each module for the next
 * process, which saves a third of the CPU time of a forge-server's start. Node's own `module.enableCompileCache`
 * begins with Node 22, and the package v8-compile-cache can't run modules that use `import()`.
 */
const folder = join(tmpdir(), "compiled");

/** What Node has but doesn't document, and @types/node doesn't declare. */
interface Internals {
  prototype: { _compile(this: NodeJS.Module, source: string, file: string): unknown };
  _resolveFilename(id: string, from: NodeJS.Module, isMain: boolean, options?: object): string;
  _resolveLookupPaths(id: string, from: NodeJS.Module): string[] | null;
  _cache: NodeJS.Dict<NodeJS.Module>;
  _extensions: NodeJS.RequireExtensions;
}

type ModuleFunction = (
  exports: unknown,
  require: NodeJS.Require,
  module: NodeJS.Module,
  file: string,
  folder: string,
) => unknown;

const internals = Module as unknown as Internals;
const fresh = new Map<string, Buffer>();

function compile(source: string, file: string): ModuleFunction {
  const key = join(folder, createHash("sha1").update(file).update(source).digest("hex"));
  const cachedData = read(key);
  const script = new vm.Script(Module.wrap(source), {
    filename: file,
    ...(cachedData && { cachedData }),
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  // At once: V8 takes back only what was compiled with the flags that it has then (bin/memory.ts).
  if (!cachedData || script.cachedDataRejected) fresh.set(key, script.createCachedData());
  return script.runInThisContext() as ModuleFunction;
}

function read(key: string): Buffer | undefined {
  try {
    return readFileSync(key);
  } catch {
    return undefined;
  }
}

/** `Module.createRequire` takes longer than what is saved. */
function requireOf(module: NodeJS.Module): NodeJS.Require {
  const resolve = (id: string, options?: object): string =>
    internals._resolveFilename(id, module, false, options);
  return Object.assign((id: string): unknown => module.require(id), {
    resolve: Object.assign(resolve, {
      paths: (id: string) => internals._resolveLookupPaths(id, module),
    }),
    cache: internals._cache,
    extensions: internals._extensions,
    main: process.mainModule,
  });
}

internals.prototype._compile = function (source, file): unknown {
  const run = compile(source.replace(/^#!.*/, ""), file);
  return run.call(this.exports, this.exports, requireOf(this), this, file, dirname(file));
};

function keep(): void {
  mkdirSync(folder, { recursive: true });
  for (const [key, compiled] of fresh) {
    if (existsSync(key)) continue;
    const part = `${key}.${process.pid}`;
    writeFileSync(part, compiled);
    renameSync(part, key);
  }
  fresh.clear();
}

/** After a start, for those that come meanwhile; and at an end. */
const AFTER_MS = 2_000;
setTimeout(keep, AFTER_MS).unref();
process.once("exit", keep);
