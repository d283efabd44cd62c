import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { commandLineOf, withCommandLine } from './command-line.js';

describe('the command line that texts name', () => {
  const root = mkdtempSync(join(tmpdir(), 'command-line-'));
  const folderWith = (name: string, ...files: string[]): string => {
    for (const file of files) {
      mkdirSync(dirname(join(root, name, file)), { recursive: true });
      writeFileSync(join(root, name, file), '');
    }
    return join(root, name);
  };
  const clone = folderWith('clone', 'bin/baton.cjs', 'dist/apps/cli/src/main.js');
  const image = folderWith('image', 'dist/apps/cli/src/main.js');
  afterAll(() => rmSync(root, { recursive: true }));

  it.each([
    ['a server in a clone', join(clone, 'dist/apps/api/src/main.js'), clone, 'node bin/baton.cjs'],
    ['in a clone', join(clone, 'bin/baton.cjs'), clone, 'node bin/baton.cjs'],
    ['in a clone, called by npx', join(clone, 'node_modules/.bin/baton'), clone, 'node bin/baton.cjs'],
    ['from a folder of a clone', join(clone, 'bin/baton.cjs'), join(clone, 'dist'), 'node ../bin/baton.cjs'],
    [
      'a server in the image',
      join(image, 'dist/apps/api/src/main.js'),
      image,
      'node dist/apps/cli/src/main.js',
    ],
    ['in the image', join(image, 'dist/apps/cli/src/main.js'), image, 'node dist/apps/cli/src/main.js'],
    ['from the PATH', '/usr/local/bin/baton', clone, 'baton'],
    ['from the npm package', '/home/a/node_modules/.bin/baton', root, 'npx baton'],
    [
      'a server of the npm package',
      '/home/a/node_modules/baton/dist/apps/api/src/main.js',
      root,
      'npx baton',
    ],
  ])('%s', (_, script, folder, command) => expect(commandLineOf(script, folder)).toBe(command));

  it.each(['npx baton', 'node bin/baton.cjs', 'node dist/apps/cli/src/main.js'])(
    'replaces the one of a server: %s',
    (command) =>
      expect(withCommandLine(`There is no tenant "x": ${command} tenants list shows all.`, 'baton')).toBe(
        'There is no tenant "x": baton tenants list shows all.',
      ),
  );
});
