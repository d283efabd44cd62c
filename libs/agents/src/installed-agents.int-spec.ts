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
      folders.map(({ folder }) => (folder.endsWith('broken') ? `${folder}: broken` : undefined)),
    ),
  ),
}));

const ENVIRONMENT = loadEnvironment({ DATABASE_URL: 'postgres://baton@localhost/baton' });
const load = (from: string) => loadInstalledAgents(from, ENVIRONMENT, Logger.silent());

const AGENT = 'name: A\ndescription: An agent\nruntime: executor\n';
let directory: string;

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
    const { agents, errors } = await load(directory);
    expect(errors).toEqual([]);
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
    const { agents, errors } = await load(directory);
    expect(agents.map(({ slug }) => slug)).toEqual(['for-all', 'good']);
    const file = (slug: string) => join(directory, slug, 'agent.yaml');
    expect(errors).toEqual([
      expect.stringContaining(`${file('b-field')}: skills[0].name: `),
      expect.stringContaining(`${file('c-yaml')}: `),
      expect.stringContaining(`${file('d-none')}: `),
      `${file('e-module')}: config.module: must be a path inside the folder of the agent`,
      expect.stringContaining(`${file('echo')}: slug: "echo" is the name of a built-in agent`),
      `${file('f-runtime')}: runtime: must be "executor"`,
      `${join(directory, 'a-broken')}: broken`,
    ]);
  });

  it('are none when their directory can not be read', async () => {
    const { agents, errors } = await load(join(directory, 'no-such'));
    expect(agents).toEqual([]);
    expect(errors).toEqual([expect.stringMatching(/^BATON_AGENTS_DIR can not be read: .*ENOENT/)]);
  });
});
