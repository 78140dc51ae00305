import { Box, Briefcase, House, type LucideIcon, Server } from "lucide-react";

export interface NavPage {
  to: "/" | "/jobs" | "/workers" | "/artifacts";
  title: string;
  icon: LucideIcon;
  /** After `g`. */
  key: string;
}

/** The pages of the sidebar, the palette and the keys. A page is listed when it works. */
export const NAV: readonly NavPage[] = [
  { to: "/", title: "Overview", icon: House, key: "o" },
  { to: "/jobs", title: "Jobs", icon: Briefcase, key: "j" },
  { to: "/workers", title: "Workers", icon: Server, key: "w" },
  { to: "/artifacts", title: "Artifacts", icon: Box, key: "a" },
];
