import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ALLOCATOR } from '../../apps/local/src/app-processes.js';

const ROOT = join(__dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** The stages of the Dockerfile, each with its instructions. */
const stages = read('Dockerfile')
  .split(/^FROM /m)
  .slice(1)
  .map((text) => text.split('\n').map((line) => line.trim()));
/** What the instructions `COPY <source> … <target>` name; those with `--from` copy from another stage. */
const copied = (stage: readonly string[], isFromStage: boolean): string[] =>
  stage
    .filter((line) => line.startsWith('COPY ') && line.includes('--from=') === isFromStage)
    .flatMap((line) => line.split(/\s+/).slice(1, -1))
    .filter((word) => !word.startsWith('--'));

const ignored = read('.dockerignore').split('\n').filter(Boolean);
const packages = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;

describe('the image', () => {
  it('copies what there is, and what .dockerignore lets through', () => {
    const sources = stages.flatMap((stage) => copied(stage, false));
    expect(sources.length).toBeGreaterThan(8);
    expect(sources.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    // All is ignored but what is named.
    expect(ignored[0]).toBe('*');
    expect(sources.filter((path) => !ignored.includes(`!${path}`))).toEqual([]);
  });

  it('has in its last stage what the build makes, packages and migrations', () => {
    const last = stages.at(-1)!;
    expect([...copied(last, true), ...copied(last, false)].sort()).toEqual(
      ['/app/node_modules', '/app/dist', 'package.json', 'prisma'].sort(),
    );
  });

  it('sets the allocator as `npm start` does', () => {
    const variables = stages
      .at(-1)!
      .filter((line) => line.startsWith('ENV '))
      .join(' ')
      .split(' ');
    expect(variables).toEqual(
      expect.arrayContaining(Object.entries(ALLOCATOR).map((each) => each.join('='))),
    );
  });

  it('holds every program that its command, Compose and the docs start in it', () => {
    const compose = Object.values(
      (
        parse(read('docker-compose.yml'), { merge: true }) as {
          services: Record<string, { command?: string[] }>;
        }
      ).services,
    ).map(({ command }) => command?.join(' ') ?? '');
    const docs = ['README.md', 'docs/start/production.md', 'docs/operating/backup.md'].map(read);
    const texts = [read('Dockerfile').replaceAll(/[",[\]]/g, ''), ...compose, ...docs];
    const programs = texts.flatMap((text) => text.match(/(?<=node )dist\/\S+\.js/g) ?? []);
    expect(new Set(programs).size).toBeGreaterThanOrEqual(4);
    const sources = programs.map((path) => path.replace('dist/', '').replace(/\.js$/, '.ts'));
    expect(sources.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('has every package that its programs import, also those that they load late', () => {
    const imported = new Set(shippedFiles().flatMap(importsOf));
    expect(imported.size).toBeGreaterThan(30);
    const shipped = Object.keys(packages.dependencies!);
    expect([...imported].filter((name) => !shipped.includes(name)).sort()).toEqual([]);
  });
});

/** The sources of the programs in the image. `npm start` (apps/local) is not one of them. */
function shippedFiles(): string[] {
  return ['apps/api', 'apps/worker', 'apps/cli', 'libs'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/spec\.ts$|fixture\.ts$|(^|\/)testing\//.test(name))
      .map((name) => join(ROOT, folder, name)),
  );
}

const IMPORT =
  /^(?:import|export)(?! type\b)[^;]*? from '([^']+)'|^import '([^']+)'|\b(?:import|require(?:\.resolve)?)\('([^']+)'\)/gm;

/** The npm packages that a file imports when it runs. */
const importsOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(IMPORT)]
    .map(([, named, bare, late]) => named ?? bare ?? late ?? '')
    .filter((specifier) => !/^(\.|@baton\/)/.test(specifier) && !isBuiltin(specifier))
    .map((specifier) => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/'));
