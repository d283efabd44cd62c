import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// The rules of lint/baton.mjs. Which files each is for is said in .oxlintrc.json.

const ROOT = join(__dirname, '../..');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'baton-lint-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Diagnostic {
  code: string;
  message: string;
}

/** What a rule says of a source file. */
function lint(rule: string, source: string): string[] {
  const config = join(folder, 'config.json');
  const plugins = [join(ROOT, 'lint/baton.mjs')];
  writeFileSync(
    config,
    JSON.stringify({ jsPlugins: plugins, categories: {}, rules: { [`baton/${rule}`]: 'error' } }),
  );
  writeFileSync(join(folder, 'source.ts'), source);
  const oxlint = join(ROOT, 'node_modules/.bin/oxlint');
  const { stdout, error } = spawnSync(oxlint, ['-c', config, '-f', 'json', folder], { encoding: 'utf8' });
  if (error) throw error;
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: Diagnostic[] };
  return diagnostics.filter(({ code }) => code === `baton(${rule})`).map(({ message }) => message);
}

describe('baton/one-exported-class', () => {
  it('names the class that needs its own file, and the one that is there already', () => {
    expect(
      lint('one-exported-class', 'export class One {}\nexport class Other {}\nclass Inner {}\n'),
    ).toEqual(['Give Other its own file: One is exported here already.']);
    expect(
      lint('one-exported-class', 'export class One {}\nclass Inner {}\nexport const x = Inner;\n'),
    ).toEqual([]);
  });
});

describe('baton/log-table', () => {
  it.each([
    ['a string', `export const READ = 'SELECT FROM task_events';`],
    ['a template', 'export const read = (n: number) => `SELECT FROM task_events e LIMIT ${n}`;'],
  ])('says where SQL on the rows of a log belongs, in %s', (_, source) => {
    expect(lint('log-table', source)).toEqual([
      'Put this SQL in libs/database/src/log/ and import it: a row of task_events may hold several events, and event 1 may have no row.',
    ]);
  });

  it('allows comments and other tables', () => {
    expect(
      lint('log-table', `// task_events\nexport const READ = 'SELECT FROM my_task_events_too, tasks';`),
    ).toEqual([]);
  });
});

describe('baton/named-inputs', () => {
  it('names the position that is counted by hand, and where names are explained', () => {
    const values = 'export const PUT = `INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6)`;';
    expect(lint('named-inputs', values)).toEqual([
      'Give the inputs of this statement names: it counts $6 by hand. See libs/database/src/sql/statement.ts.',
    ]);
  });

  it('allows a few positions', () => {
    expect(lint('named-inputs', 'export const PUT = `INSERT INTO t VALUES ($1, $2, $3, $4, $5)`;')).toEqual(
      [],
    );
  });
});

describe('baton/no-contractions', () => {
  it.each(["/** It can't be read. */", '// They don’t', "/* That's it, and it's well. */"])(
    'refuses %s',
    (comment) => {
      expect(lint('no-contractions', `${comment}\nexport const a = 1;\n`)).toEqual([
        expect.stringMatching(/^Write "[a-z]+['’][a-z]+" in full: cannot, does not, it is\.$/i),
      ]);
    },
  );

  it('takes possessives, and texts in code', () => {
    const source = `// The agent's file, and its users' names\nexport const asked = "don't";\n`;
    expect(lint('no-contractions', source)).toEqual([]);
  });
});
