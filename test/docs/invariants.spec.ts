import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as ts from 'typescript';

const ROOT = join(__dirname, '../..');

/** Every test that docs/inside/invariants.md names, by the number of its invariant. */
function namedTests(): [string, string][] {
  const rows = readFileSync(join(ROOT, 'docs/inside/invariants.md'), 'utf8').matchAll(
    /^\| (\d+) +\|.*\| (.*?) +\|$/gm,
  );
  return [...rows].flatMap(([, number, tests]) =>
    [...tests!.matchAll(/`([^`]+)`/g)].map(([, name]): [string, string] => [number!, name!]),
  );
}

describe('docs/inside/invariants.md', () => {
  const named = namedTests();
  const sources = specs().map((file) => readFileSync(file, 'utf8'));
  const runs = new Set(
    sources
      .filter((source) => named.some(([, name]) => source.includes(`'${name}'`)))
      .flatMap((source) => testsThatRun(source)),
  );

  it('has at least one test for each of the twelve invariants', () => {
    expect(new Set(named.map(([number]) => number)).size).toBe(12);
  });

  it.each(named)('invariant %s: there is a test "%s", and it is not skipped', (_number, name) => {
    expect(runs).toContain(name);
  });
});

it('a test that is skipped, to be done, expected to fail or only mentioned does not count', () => {
  const source = `
    it('plain', () => {});
    it.each(['a'])('each', () => {});
    if (driver === 'redis') describe('inside', () => it('where there is Redis', () => {}));
    it.skip('skipped', () => {});
    it.skip.each(['a'])('skipped each', () => {});
    xit('excluded', () => {});
    it.todo('to be done');
    it.failing('failing', () => {});
    (hasRedis ? it : it.skip)('perhaps', () => {});
    describe.skip('outside', () => it('below a skipped one', () => {}));
    xdescribe.each(['a'])('outside', () => it('below an excluded one', () => {}));
    // it('a comment', () => {});
    const name = 'a text';`;
  expect(testsThatRun(source)).toEqual(['plain', 'each', 'where there is Redis']);
});

/** The names of the tests of a file that run, at least where their services are there. */
function testsThatRun(source: string): string[] {
  const names: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const way = wayOf(node.expression);
      if (/^(x?describe|fdescribe)\b/.test(way) && !/^describe(\.each)?$/.test(way)) return;
      const [title] = node.arguments;
      if (/^(it|test)(\.each|\.concurrent)*$/.test(way) && title && ts.isStringLiteralLike(title)) {
        names.push(title.text);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('a.spec.ts', source, ts.ScriptTarget.Latest));
  return names;
}

/** What is called: `it`, `describe.skip`; of `it.each(table)(…)` it is `it.each`. */
function wayOf(callee: ts.Expression): string {
  if (ts.isCallExpression(callee)) return wayOf(callee.expression);
  if (ts.isTaggedTemplateExpression(callee)) return wayOf(callee.tag);
  if (ts.isPropertyAccessExpression(callee)) return `${wayOf(callee.expression)}.${callee.name.text}`;
  return ts.isIdentifier(callee) ? callee.text : '';
}

/** Files of tests, and the modules of those that share a Baton, which they import for their tests alone. */
function specs(): string[] {
  return ['libs', 'apps', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('spec.ts'))
      .map((file) => join(ROOT, folder, file))
      .flatMap((file) => [file, ...modulesOf(file)]),
  );
}

function modulesOf(file: string): string[] {
  const imports = readFileSync(file, 'utf8').matchAll(/^import '(\.\/.*)\.js';$/gm);
  return [...imports].map(([, name]) => join(file, '..', `${name}.ts`));
}
