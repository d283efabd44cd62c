import type { Agent } from '@baton/a2a';
import { packAgent } from '@baton/agents';
import type { Environment } from '@baton/config';
import type { AgentStore, ClaimedRun, RunStore } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PinnedAgents } from './pinned-agents.js';

const agentOf = (origin: Agent['origin'], versions?: 'pinned'): Agent =>
  ({ id: 'a', slug: 'keeper', origin, version: 3, definition: { versions } }) as unknown as Agent;
const SECOND = {
  tenantId: 't',
  taskId: 'task',
  runId: 'task',
  attempt: 2,
  snapshot: { task: {} },
} as ClaimedRun;
const FIRST = { ...SECOND, attempt: 1 };

let root: string;
let temporary: string | undefined;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'baton-pinned-agents-'));
  temporary = process.env.TMPDIR;
  process.env.TMPDIR = root;
});
afterAll(() => {
  if (temporary === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = temporary;
  rmSync(root, { recursive: true });
});

/** An agent in code with this `agent.yaml`, as a worker keeps it. */
async function packed(yaml: string): ReturnType<typeof packAgent> {
  const folder = join(root, 'agents', 'keeper');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'agent.yaml'), yaml);
  writeFileSync(join(folder, 'index.mjs'), 'export default 1;');
  return packAgent(join(root, 'agents'), 'keeper');
}

function pinnedWith(
  reads: { begunWith?: unknown; version?: unknown; archive?: () => Promise<unknown> },
  environment: { devMode?: boolean } = {},
) {
  const asked: string[] = [];
  const noted = (name: string, give: () => unknown) => async () => {
    asked.push(name);
    return give();
  };
  const runs = {
    begunWith: async (_: string, taskId: string) => {
      asked.push(taskId === 'task' ? 'begunWith' : `begunWith of ${taskId}`);
      return reads.begunWith;
    },
  };
  const agents = {
    version: noted('version', () => reads.version),
    archive: noted('archive', () => reads.archive?.()),
  };
  const pinned = new PinnedAgents(
    runs as unknown as RunStore,
    agents as unknown as AgentStore,
    { agentsDir: '/nowhere', ...environment } as unknown as Environment,
    Logger.silent(),
  );
  return { pinned, asked };
}

describe('the version of a pinned task', () => {
  it('is the newest, and costs nothing, where nothing is pinned and where a task begins', async () => {
    const { pinned, asked } = pinnedWith({ begunWith: { version: 1 } });
    const free = agentOf('catalog');
    expect(await pinned.versionFor(SECOND, free, undefined)).toBe(free);
    const own = agentOf('catalog', 'pinned');
    expect(await pinned.versionFor(FIRST, own, undefined)).toBe(own);
    expect(asked).toEqual([]);
  });

  it('is the one with which the task began, while it is there', async () => {
    const agent = agentOf('catalog', 'pinned');
    const old = { name: 'old' };
    const { pinned } = pinnedWith({ begunWith: { version: 1 }, version: old });
    expect(await pinned.versionFor(SECOND, agent, undefined)).toMatchObject({ definition: old, version: 1 });
    const { pinned: erased } = pinnedWith({ begunWith: { version: 1 } });
    expect(await erased.versionFor(SECOND, agent, undefined)).toBe(agent);
  });

  it('is that of the canceled task whose steps it undoes, from the beginning', async () => {
    const old = { name: 'old' };
    const { pinned, asked } = pinnedWith({ begunWith: { version: 1 }, version: old });
    const task = { metadata: { 'baton.undoes': { taskId: 'canceled', runId: 'canceled' } } };
    const undoing = { ...FIRST, snapshot: { task } } as unknown as ClaimedRun;
    expect(await pinned.versionFor(undoing, agentOf('catalog', 'pinned'), undefined)).toMatchObject({
      definition: old,
    });
    expect(asked).toEqual(['begunWith of canceled', 'version']);
  });

  it('is never other code because Postgres was away: the run is tried again', async () => {
    const agent = agentOf('installed', 'pinned');
    const away = Object.assign(new Error('gone'), { code: 'ECONNRESET' });
    const { pinned } = pinnedWith({ begunWith: { code: 'old' }, archive: () => Promise.reject(away) });
    await expect(pinned.versionFor(SECOND, agent, 'new')).rejects.toBe(away);
    const { pinned: lost } = pinnedWith({ begunWith: { code: 'old' } });
    expect(await lost.versionFor(SECOND, agent, 'new')).toBe(agent);
    // Its code is too large to keep.
    const { pinned: same, asked } = pinnedWith({ begunWith: { code: 'new' } });
    expect(await same.versionFor(SECOND, agent, 'new')).toBe(agent);
    expect(asked).toEqual(['begunWith', 'archive']);
  });

  it('is a copy of the files, also of the newest: they may change below a running worker', async () => {
    const yaml = 'name: Keeper\ndescription: Of before.\nruntime: executor\nversions: pinned\n';
    const { archive, code } = await packed(yaml);
    const agent = agentOf('installed', 'pinned');
    const reads = { archive: () => Promise.resolve(archive) };
    const { pinned, asked } = pinnedWith(reads);
    const begun = await pinned.versionFor(FIRST, agent, code);
    expect(begun).toMatchObject({ code, definition: { description: 'Of before.' } });
    expect(readFileSync(join(begun.folder!, 'index.mjs'), 'utf8')).toBe('export default 1;');
    expect(asked).toEqual(['archive']);
    // An author works on the files themselves.
    const { pinned: author, asked: none } = pinnedWith(reads, { devMode: true });
    expect(await author.versionFor(FIRST, agent, code)).toBe(agent);
    expect(none).toEqual([]);
  });

  it('is never other code because this release cannot read its agent.yaml: the run is parked, with the remedy', async () => {
    const { archive, code } = await packed('name: Keeper\ndescription: Keeps.\nruntime: abacus\n');
    const { pinned } = pinnedWith({ begunWith: { code }, archive: () => Promise.resolve(archive) });
    await expect(pinned.versionFor(SECOND, agentOf('installed', 'pinned'), 'new')).rejects.toMatchObject({
      name: 'JournalMismatch',
      agent: 'keeper',
      code,
      message: expect.stringMatching(
        /\(.{16}\) is kept, but this release of Baton cannot read its keeper\/agent\.yaml:3: .*runtime.*Run a worker of a release that can/,
      ) as string,
    });
  });

  it('is never other code because a worker cannot unpack what is kept: the run is parked', async () => {
    const agent = agentOf('installed', 'pinned');
    const { pinned } = pinnedWith({
      begunWith: { code: 'old' },
      archive: () => Promise.resolve(Buffer.from('torn')),
    });
    await expect(pinned.versionFor(SECOND, agent, 'new')).rejects.toMatchObject({
      name: 'JournalMismatch',
      agent: 'keeper',
      code: 'old',
      message: expect.stringMatching(/began \(old\) is kept, but a worker could not unpack it: /) as string,
    });
  });
});
