import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadInstalledAgents } from './installed-agents.js';
import { loadExecutor } from './runtimes/executor/load-executor.js';

// Loading modules has its own tests; here every folder's module is as good as its name.
jest.mock('./runtimes/executor/load-executor.js', () => ({
  loadExecutor: jest.fn((folder: string) =>
    folder.endsWith('broken') ? Promise.reject(new Error(`${folder}: broken`)) : Promise.resolve(() => ({})),
  ),
}));

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
    const { agents, errors } = await loadInstalledAgents(directory);
    expect(errors).toEqual([]);
    expect(agents).toMatchObject([
      { slug: 'for-all', tenants: null, definition: { name: 'A', version: '1.0.0', config: {} } },
      { slug: 'good', tenants: ['demo'], definition: { config: { module: 'dist/main.js' } } },
    ]);
    expect(agents[1]?.definition).not.toHaveProperty('tenants');
    expect(loadExecutor).toHaveBeenCalledWith(join(directory, 'good'), 'dist/main.js');
  });

  it('are kept from working by none that is broken; each is named with its file and field', async () => {
    await write('a-broken', AGENT);
    await write('b-field', `${AGENT}skills: [{ id: x }]\n`);
    await write('c-yaml', 'name: [');
    await write('d-none', '', 'index.js');
    await write('echo', AGENT);
    await write('e-module', `${AGENT}config: { module: ../x.js }\n`);
    await write('f-runtime', AGENT.replace('executor', 'echo'));
    const { agents, errors } = await loadInstalledAgents(directory);
    expect(agents.map(({ slug }) => slug)).toEqual(['for-all', 'good']);
    const file = (slug: string) => join(directory, slug, 'agent.yaml');
    expect(errors).toEqual([
      `${join(directory, 'a-broken')}: broken`,
      expect.stringContaining(`${file('b-field')}: skills[0].name: `),
      expect.stringContaining(`${file('c-yaml')}: `),
      expect.stringContaining(`${file('d-none')}: `),
      `${file('e-module')}: config.module: must be a path inside the folder of the agent`,
      expect.stringContaining(`${file('echo')}: slug: "echo" is the name of a built-in agent`),
      `${file('f-runtime')}: runtime: must be "executor"`,
    ]);
  });

  it('are none when their directory can not be read', async () => {
    const { agents, errors } = await loadInstalledAgents(join(directory, 'no-such'));
    expect(agents).toEqual([]);
    expect(errors).toEqual([expect.stringMatching(/^BATON_AGENTS_DIR can not be read: .*ENOENT/)]);
  });
});
