/** The text that a process serves under /metrics. */
export async function readMetrics(baseUrl: string, adminKey: string): Promise<string> {
  const answer = await fetch(`${baseUrl}/metrics`, {
    headers: { authorization: `Bearer ${adminKey}` },
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  return await answer.text();
}

/** The value of the series with exactly these labels. */
export function sampleOf(
  text: string,
  of: string,
  labels: Record<string, string> = {},
): number | undefined {
  const parts = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
  const series = parts.length > 0 ? `${of}{${parts.join(",")}}` : of;
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length));
}
