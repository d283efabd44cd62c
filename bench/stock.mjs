// The services that figures are measured on: Debian's Postgres, where it is installed, and Redis, as docker-compose.yml sets them.
// BENCH_POSTGRES=embedded takes the Postgres of `npm start` as `npm start` tunes it, BENCH_POSTGRES=17 that release of npm's packages.
import { createRequire } from 'node:module';
import { fetchRelease } from '../test/postgres/releases.mjs';

const require = createRequire(import.meta.url);
require('../test/support/load-typescript.js');
const { debianPostgres, stockPostgres } = require('../test/support/stock-postgres.ts');
/** Lines of the configuration of Redis that docker-compose.yml sets. */
export const { composeRedis } = require('../test/support/stock-redis.ts');

/**
 * Options of `startPostgres`.
 * @param which `embedded`, a release, or nothing for Debian's
 */
export function postgresOptions(which = process.env.BENCH_POSTGRES) {
  if (which === 'embedded') return {};
  // npm ci has installed 18.
  if (which === '18') return { ...stockPostgres(), programs: undefined };
  return stockPostgres(which ? fetchRelease(which) : debianPostgres());
}

/** The Postgres of the figures, in words. */
export function postgresTitle() {
  const which = process.env.BENCH_POSTGRES;
  if (which === 'embedded') return 'Postgres as `npm start` tunes its own';
  const programs = which
    ? `Postgres ${which} of npm`
    : debianPostgres()
      ? 'the Postgres of Debian'
      : 'the Postgres of npm';
  return `${programs}, set as docker-compose.yml sets it`;
}
