import { type Code, CodeTabs } from "../ui/code-tabs";
import { Section } from "../ui/page";

/** Shows the form's content as commands and code, to use in scripts. */
export const CodeExamples = ({ codes }: { codes: readonly Code[] }) => (
  <Section title="The same without this form">
    <CodeTabs codes={codes} copy="Copy as" />
  </Section>
);
