import { loadEnvironment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadInstalledAgents } from './installed-agents.js';
import { checkExecutors } from './runtimes/executor/check-executors.js';

// Loading modules has its own tests; here every folder's module is as good as its name.
jest.mock('./runtimes/executor/check-executors.js', () => ({
  checkExecutors: jest.fn((folders: { folder: string }[]) =>
    Promise.resolve(
      folders.map(({ folder }) =>
        folder.endsWith('broken')
          ? { file: 'index.js', line: 3, reason: `${folder}/x.js is broken` }
          : undefined,
      ),
    ),
  ),
}));

const ENVIRONMENT = loadEnvironment({ DATABASE_URL: 'postgres://baton@localhost/baton' });
const load = (from: string) => loadInstalledAgents(from, ENVIRONMENT, Logger.silent());

const AGENT = 'name: A\ndescription: An agent\nruntime: executor\n';
let directory: string;
const matching = (pattern: RegExp) => expect.stringMatching(pattern) as string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'baton-agents-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function write(slug: string, text: string, file = 'agent.yaml'): Promise<void> {
  await mkdir(join(directory, slug), { recursive: true });
  await writeFile(join(directory, slug, file), text);
}

describe('installed agents', () => {
  it('are the folders that have an agent file, each by its own name', async () => {
    await write('good', `${AGENT}tenants: [demo]\nconfig: { module: dist/main.js }\n`);
    await write('for-all', AGENT);
    await write('.git', AGENT);
    await write('node_modules', AGENT);
    await writeFile(join(directory, 'README.md'), '');
    const { agents, failures } = await load(directory);
    expect(failures).toEqual([]);
    expect(agents).toMatchObject([
      { slug: 'for-all', tenants: null, definition: { name: 'A', version: '1.0.0', config: {} } },
      { slug: 'good', tenants: ['demo'], definition: { config: { module: 'dist/main.js' } } },
    ]);
    expect(agents[1]?.definition).not.toHaveProperty('tenants');
    const good = { folder: join(directory, 'good'), module: 'dist/main.js' };
    expect(checkExecutors).toHaveBeenCalledWith(expect.arrayContaining([good]), expect.anything());
  });

  it('are kept from working by none that is broken; each is named with its file and field', async () => {
    await write('a-broken', AGENT);
    await write('b-field', `${AGENT}skills: [{ id: x }]\n`);
    await write('c-yaml', 'name: [');
    await write('d-none', '', 'index.js');
    await write('echo', AGENT);
    await write('e-module', `${AGENT}config: { module: ../x.js }\n`);
    await write('f-runtime', AGENT.replace('executor', 'echo'));
    const { agents, failures } = await load(directory);
    expect(agents.map(({ slug }) => slug)).toEqual(['for-all', 'good']);
    const all = { tenants: null };
    expect(failures).toEqual([
      {
        ...all,
        slug: 'b-field',
        file: 'b-field/agent.yaml',
        line: 4,
        reason: matching(/^skills\[0\]\.name: /),
      },
      expect.objectContaining({ slug: 'b-field', line: 4, reason: matching(/^skills\[0\]\.description: /) }),
      // Its file does not say which tenants may use it, so only operators see it.
      { slug: 'c-yaml', file: 'c-yaml/agent.yaml', line: 1, tenants: [], reason: matching(/./) },
      { slug: 'd-none', file: 'd-none/agent.yaml', line: null, tenants: [], reason: matching(/ENOENT/) },
      expect.objectContaining({
        file: 'e-module/agent.yaml',
        line: 4,
        reason: 'config.module: must be a path inside the folder of the agent',
      }),
      expect.objectContaining({ slug: 'echo', reason: matching(/"echo" is the name of a built-in agent/) }),
      {
        ...all,
        slug: 'f-runtime',
        file: 'f-runtime/agent.yaml',
        line: 3,
        reason: 'runtime: must be "executor" or "llm"',
      },
      // Tenants do not learn where the folder is.
      { ...all, slug: 'a-broken', file: 'a-broken/index.js', line: 3, reason: 'a-broken/x.js is broken' },
    ]);
    expect(JSON.stringify(failures)).not.toContain(directory);
  });

  it('that are broken are known to the tenants that they name', async () => {
    const folder = await mkdtemp(join(directory, '.tenants-'));
    const at = async (slug: string, tenants: string): Promise<void> => {
      await mkdir(join(folder, slug));
      await writeFile(join(folder, slug, 'agent.yaml'), `name: A\nruntime: executor\n${tenants}`);
    };
    await at('all', '');
    await at('some', 'tenants: [one, two, 3]');
    await at('wrong', 'tenants: one');
    const { failures } = await load(folder);
    const known = failures.map(({ slug, tenants }) => [slug, tenants]);
    expect(Object.fromEntries(known)).toEqual({ all: null, some: ['one', 'two'], wrong: [] });
  });

  it('are none when their directory cannot be read', async () => {
    const { agents, failures } = await load(join(directory, 'no-such'));
    expect(agents).toEqual([]);
    expect(failures).toEqual([
      {
        slug: null,
        file: '',
        line: null,
        tenants: [],
        reason: matching(/^BATON_AGENTS_DIR cannot be read: .*ENOENT/),
      },
    ]);
  });
});
