import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../..');

/** Every test that docs/invariants.md names, by the number of its invariant. */
function namedTests(): [string, string][] {
  const rows = readFileSync(join(ROOT, 'docs/invariants.md'), 'utf8').matchAll(
    /^\| (\d+) +\|.*\| (.*?) +\|$/gm,
  );
  return [...rows].flatMap(([, number, tests]) =>
    [...tests!.matchAll(/`([^`]+)`/g)].map(([, name]): [string, string] => [number!, name!]),
  );
}

describe('docs/invariants.md', () => {
  const named = namedTests();

  it('has at least one test for each of the eleven invariants', () => {
    expect(new Set(named.map(([number]) => number)).size).toBe(11);
  });

  it.each(named)('invariant %s: there is a test "%s"', (_number, name) => {
    expect(sources()).toContain(`'${name}'`);
  });
});

let all: string | undefined;
function sources(): string {
  const files = ['libs', 'apps', 'test'].flatMap((folder) => specsBelow(join(ROOT, folder)));
  all ??= files.map((file) => readFileSync(file, 'utf8')).join('\n');
  return all;
}

const specsBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('spec.ts'))
    .map((file) => join(folder, file));
