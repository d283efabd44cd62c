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
import { packAgent, readArchive } from './agent-archive.js';
import { KeptCode } from './kept-code.js';
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

const keep = () => packAgent(join(root, 'agents'), 'a');
const unpack = async (archive: Buffer, code: string, kept = new KeptCode()) => {
  const copy = await kept.unpack(() => Promise.resolve(archive), {
    slug: 'a',
    code,
    directory: join(root, 'agents'),
  });
  return copy!.folder;
};
const temporaryCopies = () => join(root, 'tmp', `baton-agents-${process.getuid?.() ?? 0}`, '.kept');

describe('the kept code of an agent', () => {
  it('has its files, and links to packages, hidden files and the files beside and above the folder', async () => {
    const directory = agentsWith({
      'a/index.mjs': 'export default 1;',
      'a/lib/words.txt': 'words',
      'a/.env': 'KEY=1',
      'a/.cache/x.json': '{}',
      'a/node_modules/x/index.js': '1',
      'shared/help.mjs': 'help',
      'package-lock.json': '{}',
    });
    writeFileSync(join(root, 'package.json'), '{"type":"module"}');
    const { archive, code } = await keep();
    expect(code).toBe(await agentCode(directory, 'a'));
    const folder = await unpack(archive, code);
    expect(readFileSync(join(folder, 'lib/words.txt'), 'utf8')).toBe('words');
    expect(readFileSync(join(folder, 'node_modules/x/index.js'), 'utf8')).toBe('1');
    expect(readFileSync(join(folder, '../shared/help.mjs'), 'utf8')).toBe('help');
    expect(readFileSync(join(folder, '../package.json'), 'utf8')).toBe('{"type":"module"}');
    expect(existsSync(join(folder, '.cache'))).toBe(false);
    // Kept are no hidden files: these are those that are there now.
    writeFileSync(join(directory, 'a/.env'), 'KEY=2');
    expect(readFileSync(join(folder, '.env'), 'utf8')).toBe('KEY=2');
    expect(JSON.stringify((await readArchive(archive, { slug: 'a', code })).files)).not.toContain('.env');
  });

  it('is read once, with its agent.yaml', async () => {
    const yaml = 'name: A\ndescription: Of before.\nruntime: executor\n';
    const directory = agentsWith({ 'a/index.mjs': 'export default 1;', 'a/agent.yaml': yaml });
    const { archive, code } = await keep();
    writeFileSync(join(directory, 'a/agent.yaml'), yaml.replace('before', 'now'));
    const kept = new KeptCode();
    await unpack(archive, code, kept);
    const again = await kept.unpack(() => Promise.reject(new Error('no')), { slug: 'a', code, directory });
    expect(again!.read).toMatchObject({ definition: { description: 'Of before.' } });
  });

  it.each([
    ['changed', (folder: string) => writeFileSync(join(folder, 'index.mjs'), 'export default 2;')],
    ['removed', (folder: string) => rmSync(join(folder, 'index.mjs'))],
  ])('is made again after a file was %s, with a new worker and with the same', async (_, spoil) => {
    agentsWith({ 'a/index.mjs': 'export default 1;' });
    const { archive, code } = await keep();
    const kept = new KeptCode();
    const folder = await unpack(archive, code, kept);
    const read = () => readFileSync(join(folder, 'index.mjs'), 'utf8');
    spoil(folder);
    await unpack(archive, code);
    expect(read()).toBe('export default 1;');
    const now = jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_001);
    spoil(folder);
    await unpack(archive, code, kept);
    now.mockRestore();
    expect(read()).toBe('export default 1;');
    expect(readdirSync(temporaryCopies())).toEqual([`a-${code}`]);
  });

  it('keeps what the agent has written into it', async () => {
    agentsWith({ 'a/index.mjs': 'export default 1;' });
    const { archive, code } = await keep();
    const folder = await unpack(archive, code);
    writeFileSync(join(folder, 'notes.json'), '{}');
    await unpack(archive, code);
    expect(existsSync(join(folder, 'notes.json'))).toBe(true);
  });

  it('is whole for each of several workers that need it at the same time', async () => {
    const files = Array.from({ length: 300 }, (_, n) => [`a/lib/${n}.mjs`, `export default ${n};`] as const);
    const directory = agentsWith(Object.fromEntries(files));
    const { archive, code } = await keep();
    const kept = temporaryCopies();
    // The others come while the first one writes.
    const late = async (): Promise<Buffer> => {
      while (!existsSync(kept) || readdirSync(kept).length === 0) await setImmediate();
      return archive;
    };
    const archives = [() => Promise.resolve(archive), late, late];
    const copies = await Promise.all(
      archives.map((read) => new KeptCode().unpack(read, { slug: 'a', code, directory })),
    );
    expect(new Set(copies.map((copy) => copy!.folder)).size).toBe(1);
    expect(readdirSync(join(copies[0]!.folder, 'lib'))).toHaveLength(300);
    expect(readdirSync(kept)).toEqual([`a-${code}`]);
  });

  it('has the hash of the files that were packed, and runs only with it', async () => {
    const directory = agentsWith({ 'a/index.mjs': 'export default 1;' });
    const before = await agentCode(directory, 'a');
    writeFileSync(join(directory, 'a/index.mjs'), 'export default 2;');
    const { archive, code } = await keep();
    expect(code).not.toBe(before);
    await expect(unpack(archive, before)).rejects.toThrow(`is not ${before}, but ${code}`);
  });

  it.each(['../outside.mjs', '/etc/outside', 'a/../../outside', '.ssh/outside'])(
    'is refused with a file %s',
    async (path) => {
      const archive = gzipSync(JSON.stringify({ files: [[path, '']] }));
      await expect(unpack(archive, '0'.repeat(16))).rejects.toThrow('has a file');
    },
  );

  it('is bounded', async () => {
    agentsWith({ 'a/data.txt': 'x'.repeat(17 * 1024 * 1024) });
    await expect(keep()).rejects.toThrow('16 MiB');
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    await expect(unpack(bomb, '0'.repeat(16))).rejects.toThrow();
  });
});
