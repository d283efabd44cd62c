/** A gauge or counter of an API, as Prometheus would read it from its management port. */
export async function readGauge(managementUrl: string, name: string): Promise<number> {
  const text = await (await fetch(`${managementUrl}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

/** Resolves when the gauge has that value. */
export async function gaugeBecomes(managementUrl: string, name: string, value: number): Promise<void> {
  while ((await readGauge(managementUrl, name)) !== value) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
