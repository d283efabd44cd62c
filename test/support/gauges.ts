/** A gauge or counter of a process, as Prometheus would read it. */
export async function readGauge(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

/** Resolves when the gauge has that value. */
export async function gaugeBecomes(url: string, name: string, value: number): Promise<void> {
  while ((await readGauge(url, name)) !== value) await new Promise((resolve) => setTimeout(resolve, 50));
}
