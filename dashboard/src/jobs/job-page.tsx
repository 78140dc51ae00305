import { Page } from "../ui/page";

export function JobPage() {
  return <Page title="Job">…</Page>;
}
