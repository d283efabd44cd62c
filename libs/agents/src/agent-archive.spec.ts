import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { packAgent, unpackAgent } from './agent-archive.js';
import { agentCode } from './agent-code.js';

let root: string;
let temporary: string | undefined;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'baton-archive-'));
  temporary = process.env.TMPDIR;
  process.env.TMPDIR = join(root, 'tmp');
  mkdirSync(process.env.TMPDIR);
});
afterEach(() => {
  if (temporary === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = temporary;
  rmSync(root, { recursive: true });
});

function agentsWith(files: Record<string, string>): string {
  const directory = join(root, 'agents');
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  return directory;
}

const unpack = (archive: Buffer, code: string) =>
  unpackAgent(() => Promise.resolve(archive), { slug: 'a', code, directory: join(root, 'agents') });

describe('the kept code of an agent', () => {
  it('has its files but no packages and no hidden files, and gets the packages that are installed', async () => {
    const directory = agentsWith({
      'a/index.mjs': 'export default 1;',
      'a/lib/words.txt': 'words',
      'a/.env': 'SECRET=1',
      'a/node_modules/x/index.js': '1',
      'package-lock.json': '{}',
    });
    const code = await agentCode(directory, 'a');
    const folder = await unpack(await packAgent(directory, 'a'), code);
    expect(readFileSync(join(folder!, 'lib/words.txt'), 'utf8')).toBe('words');
    expect(existsSync(join(folder!, '.env'))).toBe(false);
    expect(readFileSync(join(folder!, 'node_modules/x/index.js'), 'utf8')).toBe('1');
    // Once it is there, nothing is read.
    expect(await unpackAgent(() => Promise.reject(new Error('no')), { slug: 'a', code, directory })).toBe(
      folder,
    );
  });

  it('is whole for each of several turns that need it at the same time', async () => {
    const files = Array.from({ length: 300 }, (_, n) => [`a/lib/${n}.mjs`, `export default ${n};`] as const);
    const directory = agentsWith(Object.fromEntries(files));
    const code = await agentCode(directory, 'a');
    const archive = await packAgent(directory, 'a');
    const kept = join(root, 'tmp', `baton-agents-${process.getuid?.() ?? 0}`, '.kept');
    // The others come while the first one writes.
    const late = async (): Promise<Buffer> => {
      while (!existsSync(kept) || readdirSync(kept).length === 0) await setImmediate();
      return archive;
    };
    const archives = [() => Promise.resolve(archive), late, late];
    const folders = await Promise.all(
      archives.map((read) => unpackAgent(read, { slug: 'a', code, directory })),
    );
    expect(new Set(folders).size).toBe(1);
    expect(readdirSync(join(folders[0]!, 'lib'))).toHaveLength(300);
    expect(readdirSync(kept)).toEqual([`a-${code}`]);
  });

  it('runs only with its hash', async () => {
    const directory = agentsWith({ 'a/index.mjs': 'export default 1;' });
    const code = await agentCode(directory, 'a');
    writeFileSync(join(directory, 'a/index.mjs'), 'export default 2;');
    await expect(unpack(await packAgent(directory, 'a'), code)).rejects.toThrow(`is not ${code}`);
  });

  it.each(['../outside.mjs', '/etc/outside', 'a/../../outside', '.ssh/outside'])(
    'is refused with a file %s',
    async (path) => {
      const archive = gzipSync(JSON.stringify({ files: [[path, '']] }));
      await expect(unpack(archive, '0'.repeat(16))).rejects.toThrow('has a file');
    },
  );

  it('is bounded', async () => {
    const directory = agentsWith({ 'a/data.txt': 'x'.repeat(17 * 1024 * 1024) });
    await expect(packAgent(directory, 'a')).rejects.toThrow('16 MiB');
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    await expect(unpack(bomb, '0'.repeat(16))).rejects.toThrow();
  });
});
