import {
  Box,
  Briefcase,
  CirclePlus,
  House,
  KeyRound,
  type LucideIcon,
  Receipt,
  Rocket,
  Server,
  Workflow,
} from "lucide-react";

export interface NavPage {
  to:
    | "/"
    | "/jobs"
    | "/submit"
    | "/pipelines"
    | "/workers"
    | "/artifacts"
    | "/deployments"
    | "/billing"
    | "/keys";
  title: string;
  icon: LucideIcon;
  /** Pressed after `g`. */
  key: string;
}

/** The pages of the sidebar, the palette and the keyboard shortcuts. */
export const NAV: readonly NavPage[] = [
  { to: "/", title: "Overview", icon: House, key: "o" },
  { to: "/jobs", title: "Jobs", icon: Briefcase, key: "j" },
  { to: "/submit", title: "Submit", icon: CirclePlus, key: "s" },
  { to: "/pipelines", title: "Pipelines", icon: Workflow, key: "p" },
  { to: "/workers", title: "Workers", icon: Server, key: "w" },
  { to: "/artifacts", title: "Artifacts", icon: Box, key: "a" },
  { to: "/deployments", title: "Deployments", icon: Rocket, key: "d" },
  { to: "/billing", title: "Billing", icon: Receipt, key: "b" },
  { to: "/keys", title: "API keys", icon: KeyRound, key: "k" },
];
