import { lazyRouteComponent } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { CodeMissing } from "./code-missing";

/**
 * A page whose code is loaded on first use. If the code can't be loaded, `CodeMissing` is shown.
 * Without `lazyPage`, the router would reload the tab in this case. While the server is down, the
 * user would see the browser's error page.
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
