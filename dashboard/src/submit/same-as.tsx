import { useState } from "react";
import type { JobType } from "../jobs/declared-types";
import { Snippet } from "../ui/copy";
import { Section } from "../ui/page";
import { Tabs } from "../ui/tabs";
import type { Body } from "./form-values";
import { type Snippet as Code, snippetsOf } from "./snippets";

/** Shows the form's content as a command and as code, to use in scripts. */
export function SameAs({ type, body }: { type: JobType; body: Body }) {
  const [shown, setShown] = useState<Code["id"]>("curl");
  return (
    <Section title="The same without this form">
      <Tabs
        value={shown}
        onChange={setShown}
        tabs={snippetsOf(type, body, location.origin).map(({ id, title, code }) => ({
          id,
          title,
          content: <Snippet code={code} label={`Copy as ${title}`} />,
        }))}
      />
    </Section>
  );
}
