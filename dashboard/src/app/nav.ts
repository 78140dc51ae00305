import {
  Box,
  Briefcase,
  CirclePlus,
  House,
  KeyRound,
  Receipt,
  Rocket,
  Server,
  Workflow,
} from "lucide-react";

/**
 * The pages that the sidebar, the search dialog (palette) and the keyboard shortcuts open. The
 * shortcut of a page is `g`, then its `key`.
 */
export const NAV = [
  { to: "/", title: "Overview", icon: House, key: "o" },
  { to: "/jobs", title: "Jobs", icon: Briefcase, key: "j" },
  { to: "/submit", title: "Submit", icon: CirclePlus, key: "s" },
  { to: "/pipelines", title: "Pipelines", icon: Workflow, key: "p" },
  { to: "/workers", title: "Workers", icon: Server, key: "w" },
  { to: "/artifacts", title: "Artifacts", icon: Box, key: "a" },
  { to: "/deployments", title: "Deployments", icon: Rocket, key: "d" },
  { to: "/billing", title: "Billing", icon: Receipt, key: "b" },
  { to: "/keys", title: "API keys", icon: KeyRound, key: "k" },
] as const;
