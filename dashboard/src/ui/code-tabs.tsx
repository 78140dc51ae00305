import { useState } from "react";
import { Snippet } from "./copy";
import { Tabs } from "./tabs";

/** Code for one tool or language. */
export interface Code {
  id: string;
  title: string;
  code: string;
}

/**
 * Shows one tab for each `Code`; the first tab is open initially. @param copy is the text before
 * the tab's title in the label of the copy button, e.g. "Copy as".
 */
export function CodeTabs({ codes, copy }: { codes: readonly Code[]; copy: string }) {
  const [shown, setShown] = useState(codes[0]?.id ?? "");
  return (
    <Tabs
      value={shown}
      onChange={setShown}
      tabs={codes.map(({ id, title, code }) => ({
        id,
        title,
        content: <Snippet code={code} label={`${copy} ${title}`} />,
      }))}
    />
  );
}
