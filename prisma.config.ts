import { defineConfig } from 'prisma/config';

/** For the Prisma CLI only; the processes read DATABASE_URL through libs/config. */
export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  // `generate` needs no database, so an absent URL is not an error here.
  datasource: { url: process.env.DATABASE_URL ?? '' },
});
