import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS, SCOPES } from '../../libs/a2a/src/index.js';
import { AUDIT_ACTIONS } from '../../libs/database/src/audit/audit-records.js';

const ROOT = join(__dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const sources = ['libs', 'apps'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/spec\.ts$|(^|\/)(generated|testing)\//.test(name))
    .map((name) => read(join(folder, name))),
);

/** The first group of every match in all of the code, each once. */
const inCode = (pattern: RegExp): string[] => [
  ...new Set(sources.flatMap((source) => [...source.matchAll(pattern)].map(([, found]) => found!))),
];

describe('docs/reference/metrics.md', () => {
  const documented = [...read('docs/reference/metrics.md').matchAll(/^\| `(baton_\w+)`/gm)].map(
    ([, name]) => name,
  );

  it('has every metric there is, and no other', () => {
    const metrics = inCode(/'(baton_[a-z_]+)'/g);
    expect(metrics.length).toBeGreaterThan(15);
    expect([...documented].sort()).toEqual(metrics.sort());
  });
});

describe('docs/calling/errors.md', () => {
  const rows = [...read('docs/calling/errors.md').matchAll(/^\| (-\d+) +\| (\d+) +\| `(\w+)`/gm)].map(
    ([, code, http, reason]) => `${code} ${http} ${reason}`,
  );

  it('has the code, the status and the reason of every error, and no other', () => {
    const errors = Object.values(ERRORS).map(({ code, http, reason }) => `${code} ${http} ${reason}`);
    expect([...new Set(rows)].sort()).toEqual([...new Set(errors)].sort());
    expect(rows.length).toBe(new Set(rows).size);
  });
});

describe('docs/operating/audit.md', () => {
  it('has every action and its meaning, and no other', () => {
    const table = read('docs/operating/audit.md').split('## Actions')[1]!.split('\n## ')[0]!;
    const rows = [...table.matchAll(/^\| `([\w.-]+)` +\| (.*?) +\|$/gm)].map(([, name, text]) => [
      name,
      text,
    ]);
    expect(rows).toEqual(Object.entries(AUDIT_ACTIONS));
  });
});

describe('docs/operating/tenants.md', () => {
  it('has every scope, and no other', () => {
    const table = read('docs/operating/tenants.md').split('## Scopes')[1]!.split('\n## ')[0]!;
    const scopes = [...table.matchAll(/^\| `([\w:]+)`/gm)].map(([, scope]) => scope);
    expect(scopes.sort()).toEqual([...SCOPES].sort());
  });
});

describe('docs/reference/cli.md', () => {
  const text = read('docs/reference/cli.md');

  it.each([...read('apps/cli/src/program.ts').matchAll(/^ {2}'?([\w-]+)'?: \{$/gm)].map(([, name]) => name!))(
    'describes the command %s',
    (name) => expect(text).toMatch(new RegExp(`\`${name}[ \`]`)),
  );

  // The list of each group is compared with its commands in cli.int-spec.
  it.each(
    [
      ...read('apps/cli/src/program.ts').matchAll(/^ {2}'?([\w-]+)'?: \{\n +summary:\s+'.*: (.*)',$/gm),
    ].flatMap(([, group, commands]) => commands!.split(', ').map((command) => [group!, command] as const)),
  )('describes the command %s %s', (group, command) => {
    expect(text).toMatch(new RegExp(`^\\| \`${group} [^|]*\\b${command}\\b`, 'm'));
  });
});

describe('the pages on the REST API', () => {
  const pages = [
    'reference/rest-api',
    'agents/catalog',
    'agents/schedules',
    'agents/sign-in',
    'operating/security',
    'operating/recovery',
  ]
    .map((page) => read(`docs/${page}.md`))
    .join('\n');
  const routes = readdirSync(join(ROOT, 'apps/api/src/rest'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.controller.ts'))
    .flatMap((name) => {
      const source = read(join('apps/api/src/rest', name));
      const base = /@Controller\('(v1\/[^']+)'\)/.exec(source)?.[1];
      if (base === undefined) return [];
      return [...source.matchAll(/^ {2}@(Get|Post|Put|Patch|Delete)\((?:'([^']*)')?\)/gm)].map(
        ([, method, path]) => [method!.toUpperCase(), `/${[base, path].filter(Boolean).join('/')}`] as const,
      );
    });

  it('are compared with many routes', () => expect(routes.length).toBeGreaterThan(20));

  /** A page may use its own name of a parameter: `{id or name}`. */
  it.each(routes)('describe %s %s', (method, route) => {
    const pattern = route.replaceAll(/:\w+/g, '\\{[^}]+\\}');
    expect(pages).toMatch(new RegExp(`\\| \`${method} ${pattern}[\`? ]`));
  });
});
