import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildProgram } from '../../apps/cli/src/program.js';
import { pagesIn } from './pages.js';

const ROOT = join(__dirname, '../..');
/** Pages that say how to call the command line without a clone. */
const WITHOUT_CLONE = ['docs/start/run.md', 'docs/reference/cli.md'];

const pages = pagesIn('docs', 'examples').filter((name) => name !== 'CHANGELOG.md');

const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

/** The commands that a page shows to be pasted, without the name of the program: `send echo "Hello" --stream`. */
const shownIn = (page: string): string[] =>
  [...read(page).matchAll(/^ *```[\s\S]*?^ *```/gm)]
    .flatMap(([block]) => block.replaceAll(/\\\n\s*/g, '').split('\n'))
    .flatMap((line) => [
      ...line.matchAll(
        /node (?:bin\/baton\.cjs|dist\/apps\/cli\/src\/main\.js)((?:"[^"]*"|'[^']*'|<\S[^>]*>|[^#|><"')]|(?<=\S)#)*)/g,
      ),
    ])
    .map(([, args = '']) => args.trim())
    .filter((args) => args !== '' && !args.startsWith('…'));

/** The arguments of a line, as a shell reads it. What stands in `<…>` or begins with `$` is one argument. */
const argumentsOf = (line: string): string[] =>
  [
    ...line
      .replaceAll(/<[^>]*>/g, '01a1fd44-a16f-7588-b5c7-612109190755')
      .matchAll(/(?:"[^"]*"|'[^']*'|\S)+/g),
  ].map(([word]) => word.replaceAll(/["']/g, ''));

/** Lets each command only read its arguments. */
function doNothing(command: Command): void {
  command.action(() => undefined);
  command.commands.forEach(doNothing);
}

async function refusalOf(line: string): Promise<string | undefined> {
  const said: string[] = [];
  const terminal = { out: () => undefined, err: (text: string) => void said.push(text) };
  const program = await buildProgram(argumentsOf(line), {
    source: {},
    terminal,
    stdin: () => {
      throw new Error('No command reads here');
    },
  });
  program.commands.forEach(doNothing);
  try {
    await program.parseAsync(argumentsOf(line), { from: 'user' });
    return undefined;
  } catch (error) {
    return line.includes('--help') ? undefined : `${line}: ${said.join(' ') || String(error)}`;
  }
}

describe('commands that pages show', () => {
  const withCommands = pages.filter((page) => shownIn(page).length > 0);

  it('are many', () => expect(withCommands.flatMap(shownIn).length).toBeGreaterThan(100));

  it.each(withCommands)('%s: the command line takes each', async (page) => {
    const refused = await Promise.all(shownIn(page).map(refusalOf));
    expect(refused.filter(Boolean)).toEqual([]);
  });

  // npx walks the whole tree of a clone for its programs, which takes seconds.
  it.each(pages.filter((page) => !WITHOUT_CLONE.includes(page)))('%s calls no command by npx', (page) =>
    expect(read(page).match(/npx baton .*/g) ?? []).toEqual([]),
  );
});
