import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { LocalRun } from '../support/local-run.js';

const ROOT = join(__dirname, '../..');
const INSTALLED = join(ROOT, 'node_modules');
const run = promisify(execFile);

interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}
const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;

function link(name: string, folder: string): void {
  const path = join(folder, 'node_modules', name);
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(join(INSTALLED, name), path);
}

describe('the npm packages', () => {
  let folder: string;
  const installed = (name: string): string => join(folder, 'node_modules', name);

  beforeAll(async () => {
    // Links to nothing beside the packages but what they say they need: what they forget is not found.
    folder = mkdtempSync(join(tmpdir(), 'baton-packages-'));
    chmodSync(folder, 0o711);
    await run(process.execPath, [join(ROOT, 'packages.mjs'), folder]);
    const { version } = manifestOf(ROOT);
    const needed = new Set<string>();
    for (const [name, file] of [
      ['baton', 'baton'],
      ['@baton/agent', 'baton-agent'],
      ['create-baton-agent', 'create-baton-agent'],
    ] as const) {
      mkdirSync(installed(name), { recursive: true });
      const archive = join(folder, `${file}-${version}.tgz`);
      await run('tar', ['xzf', archive, '--strip-components=1', '-C', installed(name)]);
      const { dependencies, optionalDependencies } = manifestOf(installed(name));
      for (const each of Object.keys({ ...dependencies, ...optionalDependencies })) needed.add(each);
    }
    for (const name of needed) link(name, folder);
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('run a server without a clone, and call it', async () => {
    const baton = join(installed('baton'), 'bin/baton.cjs');
    const environment = { BATON_HOME: join(folder, 'home'), PORT: '0' };
    const local = new LocalRun(environment, folder, [baton, 'start']);
    await local.ready();
    const env = { ...process.env, ...environment };
    const { stdout } = await run(process.execPath, [baton, 'send', 'echo', 'Hello'], { cwd: folder, env });
    expect(stdout).toContain('Hello');
    local.signal('SIGTERM');
    expect(await local.exited).toBe(0);
  });

  it.each(['typescript', 'javascript'])(
    'begin an agent in %s, whose test and types are fine',
    async (language) => {
      const create = join(installed('create-baton-agent'), 'index.mjs');
      const agent = join(folder, language);
      const choice = language === 'javascript' ? ['--javascript'] : [];
      const { stdout: said } = await run(process.execPath, [create, agent, ...choice]);
      expect(said).toContain('npx baton start');
      const { devDependencies = {} } = manifestOf(agent);
      expect(devDependencies['@baton/agent']).toBe(manifestOf(ROOT).version);
      for (const name of Object.keys(devDependencies).filter((each) => each !== '@baton/agent'))
        link(name, agent);
      const { stdout } = await run('npm', ['test', '--silent'], { cwd: agent });
      expect(stdout).toContain('# pass 1');
      if (language === 'typescript')
        await run(process.execPath, [join(INSTALLED, 'typescript/bin/tsc')], { cwd: agent });
    },
  );
});
