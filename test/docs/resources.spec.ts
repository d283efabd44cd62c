import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIMIT_NAMES } from '../../libs/config/src/index.js';
import { PROCESS_GROUPS } from '../../libs/config/src/settings.js';
import { NO_BOUNDS, SHARED_RESOURCES, type SharedResource } from '../../libs/config/src/shared-resources.js';
import { constantOf, resourceTable, testTable } from './resources.js';
import { withGenerated } from './with-generated.js';

const ROOT = join(__dirname, '../..');
const PAGES = {
  'docs/operating/hardening.md': resourceTable,
  'docs/inside/shared-resources.md': testTable,
};
const rows = SHARED_RESOURCES.map((resource) => [resource.name, resource] as const);

/** A setting with such a name is a bound. */
const BOUND =
  /limit|bytes|connections|perSecond|per(Host|Tenant|Address|Connection)|max|concurrency|threads|poolSize|processes/i;

const declared = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('spec.ts'))
    .flatMap((name) => [
      ...readFileSync(join(ROOT, folder, name), 'utf8').matchAll(
        /\b(?:counter|gauge|histogram)\(\s*'(baton_\w+)'/g,
      ),
    ])
    .map(([, name = '']) => name);

describe('the pages on shared resources', () => {
  it.each(Object.entries(PAGES))('%s has its table; if not, run `npm run generate`', (page, made) => {
    const file = join(ROOT, page);
    const expected = withGenerated(readFileSync(file, 'utf8'), `\n${made()}\n`);
    if (process.env.WRITE_GENERATED) writeFileSync(file, expected);
    expect(readFileSync(file, 'utf8')).toBe(expected);
  });
});

describe('the shared resources', () => {
  it('have each bound of a process in a row: a setting by its name, and each limit of a tenant', () => {
    const { limits: _, ...groups } = PROCESS_GROUPS;
    const bounds = Object.values(groups)
      .flatMap(({ settings }) => Object.keys(settings))
      .filter((key) => BOUND.test(key) && !(key in NO_BOUNDS));
    const inRows: readonly string[] = SHARED_RESOURCES.flatMap(({ settings, limits }) => [
      ...settings,
      ...limits,
    ]);
    expect([...bounds, ...LIMIT_NAMES].filter((name) => !inRows.includes(name))).toEqual([]);
  });

  it.each(rows)(
    '%s: each constant, test and metric exists',
    (_, { constants, tests, metrics }: SharedResource) => {
      for (const [name, file] of Object.entries(constants)) expect(constantOf(name, file)).toMatch(/\d/);
      expect(tests.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
      expect(tests.length).toBeGreaterThan(0);
      const known = new Set([...declared('libs'), ...declared('apps')]);
      expect(metrics.filter((name) => name.startsWith('baton_') && !known.has(name))).toEqual([]);
    },
  );

  it.each(rows)('%s: has a bound, and names its constants in its text', (_, resource) => {
    const { settings, limits, constants, share, details = '', exceeded, name } = resource;
    const named = [...`${share} ${details}`.matchAll(/\{(\w+)\}/g)].map(([, each = '']) => each);
    for (const each of named) expect(Object.keys(constants)).toContain(each);
    expect([name, share, exceeded].every(Boolean)).toBe(true);
    if (name !== 'threads of libuv') expect([...settings, ...limits].length).toBeGreaterThan(0);
  });
});
