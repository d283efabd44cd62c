// npm run test:postgres -- 14: the tests that go through the SQL of Baton, on another release of Postgres.
// npm run test:postgres -- 14 --fetch: only fetches it.
import { spawnSync } from 'node:child_process';
import { fetchRelease, RELEASES } from './releases.mjs';

/** Migrations and every statement; then a journey through all processes, with a worker that dies, retention and a backup. */
const RUNS = [
  ['integration', 'libs/(database|identity|messaging|tasks)|apps/api/src/rest'],
  ['e2e', 'test/e2e/(backup|oldest-postgres|pgbouncer|recovery|retention|unmigrated)'],
];

/**
 * What does not hold on a release. Before 17, Postgres keeps the plan of a small table until ANALYZE has seen it grow
 * (docs/operating/postgres.md), and 14 cannot be asked at once what a session has read.
 */
const LEFT_OUT = { 14: 'connection/plans', 15: 'connection/plans', 16: 'connection/plans' };

const [release, ...more] = process.argv.slice(2);
if (!(release in RELEASES)) {
  console.error(`Name a release of Postgres: ${Object.keys(RELEASES).join(', ')}. npm test runs on 18.`);
  process.exit(2);
}
fetchRelease(release);
if (more[0] !== '--fetch') {
  const env = { ...process.env, TEST_POSTGRES: release };
  for (const [project, pattern] of RUNS) {
    const args = ['jest', '--ci', '--selectProjects', project, '--testPathPatterns', pattern];
    if (LEFT_OUT[release]) args.push('--testPathIgnorePatterns', LEFT_OUT[release]);
    const { status } = spawnSync('npx', args, { env, stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
}
