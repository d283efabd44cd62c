import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { agentCode } from './agent-code.js';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'baton-code-'))));
afterEach(() => rmSync(directory, { recursive: true }));

const write = (path: string, text = 'x'): void => {
  mkdirSync(join(directory, dirname(path)), { recursive: true });
  writeFileSync(join(directory, path), text);
};
const codeOf = (slug = 'trial') => agentCode(directory, slug);

describe('the hash of the code of an agent', () => {
  beforeEach(() => {
    write('trial/index.mjs', 'one');
    write('trial/lib/help.ts');
  });

  it.each([
    ['another text', () => write('trial/index.mjs', 'two')],
    ['another file', () => write('trial/lib/more.js')],
    [
      'another name',
      () => renameSync(join(directory, 'trial/lib/help.ts'), join(directory, 'trial/lib/helper.ts')),
    ],
    ['other settings', () => write('trial/agent.yaml', 'name: Trial')],
    ['other packages', () => write('trial/package-lock.json', '{}')],
    ['other packages of all agents', () => write('package-lock.json', '{}')],
  ])('is another one with %s', async (_, change) => {
    const before = await codeOf();
    expect(before).toMatch(/^[0-9a-f]{16}$/);
    change();
    expect(await codeOf()).not.toBe(before);
  });

  it('stays with tests, data, packages and hidden files, and where a link leads to the same files', async () => {
    const before = await codeOf();
    write('trial/index.spec.ts');
    write('trial/out.csv');
    write('trial/node_modules/p/index.js');
    write('trial/.cache/index.js');
    write('other/index.mjs', 'other');
    expect(await codeOf()).toBe(before);
    symlinkSync(join(directory, 'trial'), join(directory, 'linked'));
    expect(await codeOf('linked')).toBe(before);
  });
});
