import { mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FolderPoll } from './folder-poll.js';

let directory: string;
let poll: FolderPoll;

const write = (path: string, text: string): void => {
  mkdirSync(join(directory, dirname(path)), { recursive: true });
  writeFileSync(join(directory, path), text);
};

/** Of agents that run a copy of their files. */
const look = (): Promise<string[]> => poll.readChanges(() => true);

describe('the poll of the folders of agents', () => {
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'baton-poll-'));
    write('keeper/index.mjs', 'one');
    write('keeper/agent.yaml', 'name: Keeper');
    write('other/index.mjs', 'other');
    poll = await FolderPoll.begin(directory);
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it.each([
    ['a changed file', () => write('keeper/index.mjs', 'two')],
    [
      'a changed file with the same length and time',
      () => {
        const { atime, mtime } = statSync(join(directory, 'keeper/index.mjs'));
        write('keeper/index.mjs', 'two');
        utimesSync(join(directory, 'keeper/index.mjs'), atime, mtime);
      },
    ],
    ['a removed file', () => rmSync(join(directory, 'keeper/index.mjs'))],
    ['a new file', () => write('keeper/lib/help.mjs', 'help')],
    ['changed data', () => write('keeper/words.json', '{}')],
  ])('finds %s once, after it was left alone', async (_, change) => {
    expect(await look()).toEqual([]);
    change();
    expect(await look()).toEqual([]);
    expect(await look()).toEqual(['keeper']);
    expect(await look()).toEqual([]);
  });

  it('waits for a release that is still being copied', async () => {
    write('keeper/index.mjs', 'two');
    expect(await look()).toEqual([]);
    write('keeper/lib/help.mjs', 'help');
    expect(await look()).toEqual([]);
    write('keeper/lib/more.mjs', 'more');
    expect(await look()).toEqual([]);
    expect(await look()).toEqual(['keeper']);
  });

  it('finds new agents, removed ones, and other packages of all', async () => {
    write('third/index.mjs', 'third');
    rmSync(join(directory, 'other'), { recursive: true });
    await look();
    expect((await look()).sort()).toEqual(['other', 'third']);
    write('package-lock.json', '{}');
    await look();
    expect((await look()).sort()).toEqual(['keeper', 'third']);
  });

  it('finds a removed agent again when its folder comes back with the same files', async () => {
    rmSync(join(directory, 'other'), { recursive: true });
    await look();
    expect(await look()).toEqual(['other']);
    expect(await look()).toEqual([]);
    write('other/index.mjs', 'other');
    await look();
    expect(await look()).toEqual(['other']);
  });

  it('leaves out what an agent may have written itself, unless it runs a copy of its files', async () => {
    const look = () => poll.readChanges(() => false);
    write('keeper/state.json', '{}');
    write('keeper/made.mjs', 'made');
    await look();
    expect(await look()).toEqual([]);
    write('keeper/agent.yaml', 'name: Other');
    await look();
    expect(await look()).toEqual(['keeper']);
  });

  it('takes a directory that cannot be read for no change', async () => {
    rmSync(directory, { recursive: true });
    await expect(look()).rejects.toThrow('ENOENT');
  });
});
