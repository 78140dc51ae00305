import { lazyRouteComponent } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { CodeMissing } from "./code-missing";

/**
 * A page whose code is loaded when it is first shown, or when someone points at a link to it. The router's own way
 * would load the tab again also while the server is down, and leave it with the browser's error page.
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
