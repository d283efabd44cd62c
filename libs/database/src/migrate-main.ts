import { processEnvironment } from '@baton/config';
import { migrate } from './migrate.js';

/** `npm run migrate`: brings the database of DATABASE_URL (of the environment or `.env`) up to date. Exit code 1 with one plain sentence if it can't. */
async function main(): Promise<void> {
  const url = processEnvironment().DATABASE_URL?.trim();
  if (!url) throw new Error('DATABASE_URL is not set: name the Postgres to migrate.');
  const applied = await migrate(url);
  console.log(applied.length > 0 ? `Applied: ${applied.join(', ')}` : 'The database is up to date.');
}

main().catch((error: unknown) => {
  console.error(`Migration failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
});
