/** A part of the Trusted Types API, which TypeScript's DOM library does not declare. */
interface ScriptUrls {
  createScriptURL(url: string): string;
}

interface TrustedTypesFactory {
  createPolicy(name: string, rules: ScriptUrls): ScriptUrls;
}

const rules: ScriptUrls = {
  createScriptURL: (url) => {
    // The scripts of web workers are files of this build, on this origin.
    if (new URL(url, location.href).origin === location.origin) return url;
    throw new TypeError(`no script may be loaded from ${url}`);
  },
};

const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypesFactory };
/** The only Trusted Types policy that the Content-Security-Policy header allows. */
const policy = trustedTypes?.createPolicy("forge", rules) ?? rules;

/** Starts a web worker. @param url from an import with `?worker&url`. */
export const startWorker = (url: string): Worker =>
  new Worker(policy.createScriptURL(url), { type: "module" });
