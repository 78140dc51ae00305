import type { NewApiKey } from "@forge/sdk";
import type { Code } from "../ui/code-tabs";

/** Commands with the new key, ready to paste. */
export function keySnippets({ key, scope }: NewApiKey, origin: string): Code[] {
  const text = key ?? "";
  if (scope === "worker") {
    return [
      {
        id: "agent",
        title: "Agent",
        code: `SERVICE_API_URL=${origin} SERVICE_API_KEY=${text} forge-agent`,
      },
      {
        id: "service",
        title: "As a service",
        code: [
          "sudo /opt/forge/bin/forge-agent install",
          `printf 'SERVICE_API_URL=%s\\nSERVICE_API_KEY=%s\\n' ${origin} ${text} \\`,
          "  | sudo tee /etc/forge-agent.env > /dev/null",
          "sudo systemctl restart forge-agent",
        ].join("\n"),
      },
    ];
  }
  return [
    {
      id: "export",
      title: "Shell",
      code: `export SERVICE_BASE_URL=${origin}\nexport SERVICE_API_KEY=${text}`,
    },
    {
      id: "curl",
      title: "curl",
      code: `curl -sS ${origin}/api/auth/ping -H "X-Service-Api-Key: ${text}"`,
    },
    {
      id: "python",
      title: "Python",
      code: [
        "from forge import Forge",
        "",
        `client = Forge(base_url="${origin}", api_key="${text}")`,
        "print(client.service.ping())",
      ].join("\n"),
    },
    {
      id: "forge",
      title: "forge",
      code: `echo ${text} | forge login ${origin} --api-key-stdin\nforge whoami`,
    },
  ];
}
