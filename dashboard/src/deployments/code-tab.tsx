import { Snippet } from "../ui/copy";
import { Section, Stack } from "../ui/page";

const curl = (address: string): string => `curl -N ${address}/chat/completions \\
  -H "X-Service-Api-Key: $SERVICE_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"messages": [{"role": "user", "content": "What is 2 + 2?"}], "stream": true}'`;

const python = (address: string, id: string): string => `import os

from openai import OpenAI

client = OpenAI(base_url="${address}", api_key=os.environ["SERVICE_API_KEY"])
answer = client.chat.completions.create(
    model="${id}",
    messages=[{"role": "user", "content": "What is 2 + 2?"}],
)
print(answer.choices[0].message.content)`;

/** Code that calls the deployment. It contains no API key, so it is safe to share. */
export function CodeTab({ address, id }: { address: string; id: string }) {
  return (
    <Stack gap={20}>
      <Section title="curl">
        <Snippet code={curl(address)} label="Copy the command" />
      </Section>
      <Section title="Python, with OpenAI's client">
        <Snippet code={python(address, id)} label="Copy the code" />
      </Section>
    </Stack>
  );
}
