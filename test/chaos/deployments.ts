import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cluster } from './cluster.js';

/** The agents whose folders change. `keeper` pins its tasks, `mover` runs the newest code. */
export const CODE_AGENTS = ['keeper', 'mover'] as const;

/**
 * What the code of an edition does. All begin with `mark`, sleep, `sign`, ask, and end with `seal`.
 * - `plain`: nothing else
 * - `patched`: `stamp` after the sleep, for tasks that are not beyond it: it fits the tasks of `plain`
 * - `checked`: `check` before all others: it fits no task of the others, and parks them
 */
export const SHAPES = ['plain', 'patched', 'checked'] as const;
export type Shape = (typeof SHAPES)[number];

const AGENTS = join(__dirname, 'agents');

/** Releases of `BATON_AGENTS_DIR`, each in a folder of its own, as images have them. A deploy starts the workers with the next one. */
export class Deployments {
  /** Of the release that workers start with now. */
  edition = 0;
  private shape: Shape = 'plain';
  /** `BATON_AGENTS_DIR` of the release. */
  private agents: string | undefined;
  private readonly root = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-agents-`));

  /** @param effects where steps do their effects */
  constructor(
    private readonly cluster: Pick<Cluster, 'startWith' | 'renewWorkers'>,
    private readonly effects: string,
  ) {}

  /** Writes the next release. Workers that start from now on have it; no other one is left when it resolves. */
  async deploy(shape: Shape): Promise<void> {
    this.edition += 1;
    this.shape = shape;
    const release = join(this.root, String(this.edition));
    const agents = join(release, 'agents');
    this.agents = agents;
    cpSync(AGENTS, agents, { recursive: true });
    for (const slug of CODE_AGENTS) this.write(slug);
    // Kept code is unpacked there: a worker of this release has none, and must read that of others from Postgres.
    const temporary = join(release, 'tmp');
    mkdirSync(temporary);
    this.cluster.startWith({ BATON_AGENTS_DIR: agents, TMPDIR: temporary });
    await this.cluster.renewWorkers();
  }

  /** Writes an edition with the same steps over the files of `keeper`, below the workers that run it, as `rsync` does. */
  overwrite(): void {
    if (this.agents === undefined) return;
    this.edition += 1;
    this.write('keeper');
  }

  private write(slug: (typeof CODE_AGENTS)[number]): void {
    const folder = join(this.agents ?? '', slug);
    mkdirSync(folder, { recursive: true });
    const files = { 'index.mjs': this.codeOf(this.shape), 'agent.yaml': yamlOf(slug, this.edition) };
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(folder, `.${name}`), text);
      renameSync(join(folder, `.${name}`), join(folder, name));
    }
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  private codeOf(shape: Shape): string {
    return `
import { defineAgent } from '@baton/agent';

const edition = ${this.edition};
const url = ${JSON.stringify(this.effects)};

export default defineAgent(async ({ text, step, sleep, ask, patched }) => {
  const names = [];
  const act = async (name, options) => {
    names.push(name);
    await step(name, async ({ key }) => {
      const body = JSON.stringify({ task: text, step: name, edition, key });
      const response = await fetch(url, { method: 'POST', body });
      if (!response.ok) throw new Error('HTTP ' + response.status);
    }, options);
  };
  const verify = async ({ key }) => ({ done: (await fetch(url + '/' + key)).ok });
  ${shape === 'checked' ? "await act('check');" : ''}
  await act('mark');
  await sleep('rest', 1500);
  ${shape === 'patched' ? "if (await patched('stamped')) await act('stamp');" : ''}
  await act('sign', { verify });
  await ask('more', 'More?');
  await act('seal');
  return names.join(' ') + ' of edition ' + edition;
});
`;
  }
}

const yamlOf = (slug: string, edition: number): string => `name: ${slug}
description: Its code changes.
version: 1.0.${edition}
runtime: executor
versions: ${slug === 'keeper' ? 'pinned' : 'latest'}
retry: { mode: restart, attempts: 10 }
`;
