import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { parse } from 'yaml';
import { EXIT } from './exit.js';
import { run } from './program.js';

async function baton(line: string) {
  const [out, err]: [string[], string[]] = [[], []];
  const terminal = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) };
  const cli = { source: { PORT: '8080', TYPO: 'x' }, terminal, stdin: () => Readable.from([]) };
  const code = await run(line.split(' '), cli);
  return { code, out: out.join('\n'), err: err.join('\n') };
}

describe('the command line', () => {
  it('says which release it is', async () => {
    const { version } = JSON.parse(readFileSync(join(__dirname, '../../../package.json'), 'utf8')) as {
      version: string;
    };
    expect(await baton('--version')).toEqual({ code: 0, out: version, err: '' });
    expect((await baton('--help')).out).toMatch(/--version +print the version of Baton/);
  });

  it('ends the error of a wrong option with one full stop', async () => {
    for (const line of ['usage --by nonsense', 'workers list', 'tasks lst'])
      expect((await baton(line)).err).toMatch(/^[^\n]+(\n[^\n]+)?[^.]\.\n\(--help/);
  });

  it('prints the same as a table, as JSON and as YAML', async () => {
    const table = await baton('config check --output table');
    expect(table).toEqual(await baton('config check'));
    const json = await baton('config check --output json');
    expect(json).toEqual(await baton('config check --json'));
    const yaml = await baton('config check -o yaml');
    expect(yaml.code).toBe(0);
    expect(yaml.out).not.toContain('{');
    expect(parse(yaml.out)).toEqual(JSON.parse(json.out));
  });

  it.each([
    ['config check --output xml', /^Option '-o, --output <format>' argument 'xml' is invalid/],
    ['config check --json --output yaml', /cannot be used with option '--json'/],
    ['config check --nonsense', /^Unknown option '--nonsense'/],
    ['nonsense', /^Unknown command 'nonsense'/],
    ['complete nonsense', /'nonsense' is invalid.*zsh, bash, fish/],
  ])('%s is wrong usage', async (line, sentence) => {
    const { code, out, err } = await baton(line);
    expect({ code, out }).toEqual({ code: EXIT.usage, out: '' });
    expect(err).toMatch(sentence);
  });

  it.each([
    ['complete -- tok', ['tokens']],
    ['complete -- tokens re', ['revoke']],
    ['complete -- config check --output ', ['table', 'json', 'yaml']],
  ])('%s suggests %j', async (line, suggestions) => {
    const printed: string[] = [];
    const log = jest.spyOn(console, 'log').mockImplementation((text: string) => void printed.push(text));
    try {
      expect((await baton(line)).code).toBe(0);
    } finally {
      log.mockRestore();
    }
    expect(printed.slice(0, -1).map((each) => each.split('\t')[0])).toEqual(suggestions);
  });
});
