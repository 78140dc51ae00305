import { lazyRouteComponent } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { CodeMissing } from "./code-missing";

/**
 * A page whose code is loaded on first use. If the code can't be loaded, `CodeMissing` is shown.
 * The router alone would reload the tab instead, which shows the browser's error page while the
 * server is down.
 */
export const lazyPage = <Name extends string>(
  load: () => Promise<Record<Name, ComponentType>>,
  name: Name,
) =>
  lazyRouteComponent(
    async (): Promise<Record<string, ComponentType>> =>
      await load().catch(() => ({ [name]: CodeMissing })),
    name,
  );
