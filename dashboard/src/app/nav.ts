import { Briefcase, type LucideIcon, Rocket, Server, Workflow } from "lucide-react";

export interface NavPage {
  to: "/jobs" | "/pipelines" | "/workers" | "/deployments";
  title: string;
  icon: LucideIcon;
  /** After `g`. */
  key: string;
}

/** The pages of the sidebar, the palette and the keys. A page is listed when it works. */
export const NAV: readonly NavPage[] = [
  { to: "/jobs", title: "Jobs", icon: Briefcase, key: "j" },
  { to: "/pipelines", title: "Pipelines", icon: Workflow, key: "p" },
  { to: "/workers", title: "Workers", icon: Server, key: "w" },
  { to: "/deployments", title: "Deployments", icon: Rocket, key: "d" },
];
