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

/** The pages of the sidebar, the palette and the shortcuts: `key` is pressed after `g`. */
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
