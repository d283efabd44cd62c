import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

// A type's name leads to one declaration, so that a search for it has one answer.

const ROOT = join(__dirname, '../..');
/** Tests, and files that the build makes. */
const TESTS = /\.(spec|int-spec|fixture)\.tsx?$|\.d\.ts$|\/(testing|test|oracle|generated)\//;

/** A type or class at the top of a file. */
const DECLARED =
  /^(?:export (?:default )?)?(?:declare )?(?:abstract )?(?:interface|class|enum|type) (\w+)(.*)$/gm;

/** The type of a schema of the REST API under the schema's own name: the OpenAPI document declares it. */
const isSchema = (name: string, rest: string): boolean =>
  rest.trim() === `= TenantSchemas['${name}'];` || rest.trim() === `= OperatorSchemas['${name}'];`;

/** The names that several files declare, with these files. */
function declaredTwice(sources: Iterable<readonly [file: string, text: string]>): string[] {
  const files = new Map<string, Set<string>>();
  for (const [file, text] of sources) {
    for (const [, name = '', rest = ''] of text.matchAll(DECLARED)) {
      if (isSchema(name, rest)) continue;
      files.set(name, (files.get(name) ?? new Set()).add(file));
    }
  }
  return [...files]
    .filter(([, { size }]) => size > 1)
    .map(([name, found]) => `${name}: ${[...found].sort().join(', ')}`);
}

const sources = (): [string, string][] =>
  ['apps', 'libs']
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
        join(folder, name),
      ),
    )
    .filter((file) => /\.tsx?$/.test(file) && !TESTS.test(file))
    .map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]);

it('declares each type in one file: import it, or give the other meaning another name', () => {
  const all = sources();
  expect(all.length).toBeGreaterThan(500);
  expect(declaredTwice(all)).toEqual([]);
});

it('names the files of a name that is declared twice', () => {
  expect(
    declaredTwice([
      ['a.ts', 'export interface Part {\n  text: string;\n}\ntype Tenant = string;'],
      ['b.ts', "type Part = 'manifest' | 'rows';\ntype Tenant = OperatorSchemas['Tenant'];"],
      ['c.ts', '  class Part {}'],
    ]),
  ).toEqual(['Part: a.ts, b.ts']);
});
