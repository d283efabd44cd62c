import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NIGHTLY, nightlyIt } from './nightly.js';

const DIST = join(__dirname, '../../dist');
/** Prints whether V8 refuses the code cache of the bundle in this folder. */
const ASK = `const { readFileSync } = require('node:fs');
const source = readFileSync('bundle.js', 'latin1');
const v8 = require('node:v8');
v8.setFlagsFromString('--heap-growing-percent=50');
v8.setFlagsFromString('--semi-space-growth-factor=1');
const { cachedDataRejected } = new (require('node:vm').Script)(source, { cachedData: readFileSync('bundle.cache') });
process.stdout.write(String(cachedDataRejected));`;

/**
 * Prints, before the process ends, how much room new objects take in MB: after a thread has started and many have been made,
 * when V8 has made the room small, and after many have been made again.
 */
const FILL = `const { Session } = require('node:inspector');
const { setImmediate: turnOfLoop } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const { getHeapSpaceStatistics } = require('node:v8');
const size = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').space_size / 1024 ** 2;
const fill = async () => {
  for (const alive = []; alive.length < 20_000; await turnOfLoop())
    for (let i = 0; i < 1_000; i++) alive.push(new Array(100).fill(0));
  return size();
};
const exit = process.exit;
process.exit = async (code) => {
  // V8 collects what the start has left.
  await turnOfLoop();
  await new Promise((resolve) => new Worker('', { eval: true }).once('exit', resolve));
  const first = await fill();
  const session = new Session();
  session.connect();
  session.post('HeapProfiler.collectGarbage');
  await turnOfLoop();
  const small = size();
  process.stdout.write([first, small < first, await fill()].join());
  exit(code);
};`;

describe.each([
  ['API', 'apps/api/src', 'main.js', {}, /^DATABASE_URL is not set/],
  ['worker', 'apps/worker/src', 'main.js', {}, /^DATABASE_URL is not set/],
  ['migrations', 'libs/database/src', 'migrate-main.js', {}, /^Migration failed: DATABASE_URL is not set/],
  ['command line', 'apps/cli/src', 'main.js', {}, /^Usage: baton/],
  ['local Baton', 'apps/local/src', 'main.js', { WORKERS: 'none' }, /^WORKERS is "none"/],
])('the bundle of the %s', (program, source, main, env, complaint) => {
  const folder = join(DIST, source);
  const run = (...args: string[]) =>
    spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' });

  it('has a code cache that V8 takes', () => {
    expect(run('-e', ASK)).toMatchObject({ stdout: 'false', stderr: '' });
  });

  // What loads a bundle is the same in each program (bundle.mjs): by day the API starts so.
  const inWays = program === 'API' ? it : nightlyIt;
  inWays.each([
    ['with a cache that V8 refuses', ['bundle.cache'], []],
    ['with source maps', [], ['--enable-source-maps']],
  ])('starts %s', (_, broken, options) => {
    const copy = mkdtempSync(join(DIST, 'bundle-'));
    try {
      for (const name of [main, 'bundle.js', 'bundle.js.map']) cpSync(join(folder, name), join(copy, name));
      for (const name of broken) writeFileSync(join(copy, name), 'of another version');
      const { stderr, status } = run(...options, join(copy, main));
      expect(stderr).toMatch(complaint);
      // A command that is used wrongly ends with 2.
      expect(status).toBe(complaint.source.includes('Usage') ? 2 : 1);
    } finally {
      rmSync(copy, { recursive: true });
    }
  });
});

/** V8 of Node.js 24 grows the space by pages. That of Node.js 26 does not read the factor again while it runs. */
const ROOM = /^2[45](\.\d+)?,true,2[45](\.\d+)?$/;
const itWithFactor = Number.parseInt(process.versions.v8) < 14 ? it : it.skip;

itWithFactor.each(NIGHTLY ? ['api', 'worker', 'local'] : ['api'])(
  'the bundle of %s gives new objects 24 MB, again after it had little to do',
  (program) => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-'));
    const probe = join(folder, 'fill.js');
    writeFileSync(probe, FILL);
    try {
      const args = ['--require', probe, join(DIST, `apps/${program}/src/main.js`)];
      // Without a database, or with a bad setting, they end at once.
      const start = () =>
        spawnSync(process.execPath, args, { env: { WORKERS: 'none' }, encoding: 'utf8' }).stdout;
      // The space may still grow when V8 collects between the start of a thread and its event: rare, so another start decides.
      const sizes = [start()];
      while (!ROOM.test(sizes.at(-1)!) && sizes.length < 5) sizes.push(start());
      expect(sizes.at(-1)).toMatch(ROOM);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

it('the thread that extends leases loads one file, with pg and without the packages of the main thread', () => {
  const bundled = readFileSync(join(DIST, 'libs/database/src/runs/leases/lease-thread.js'), 'utf8');
  const packages = new Set(bundled.match(/(?<=node_modules\/)(@[\w-]+\/)?[\w.-]+/g));
  expect(packages).toContain('pg');
  for (const heavy of ['@nestjs/common', 'rxjs', 'zod']) expect(packages).not.toContain(heavy);
});
