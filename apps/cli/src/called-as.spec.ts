import { calledAs, inOwnCall } from './called-as.js';

describe('how the command line is called again', () => {
  it.each([
    ['in a clone', '/clone/bin/baton.cjs', {}, 'node bin/baton.cjs'],
    ['in the image', '/clone/dist/apps/cli/src/main.js', {}, 'node dist/apps/cli/src/main.js'],
    ['from the PATH', '/usr/local/bin/baton', {}, 'baton'],
    ['by npx', '/clone/node_modules/.bin/baton', { npm_command: 'exec' }, 'npx baton'],
  ])('%s', (_, script, env, call) => expect(calledAs(script, env, '/clone')).toBe(call));

  it('is what notes and errors name', () =>
    expect(inOwnCall('There is no tenant "x": npx baton tenants list shows all.', 'node bin/baton.cjs')).toBe(
      'There is no tenant "x": node bin/baton.cjs tenants list shows all.',
    ));
});
