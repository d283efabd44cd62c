#!/usr/bin/env node
// Stands in for Prisma's schema engine where none may be downloaded. It must fail: if it exited with 0,
// `prisma migrate deploy` would report success and apply nothing.
process.stderr.write(
  'No schema engine here: run `npm run migrate`, or unset PRISMA_SCHEMA_ENGINE_BINARY so that Prisma downloads it.\n',
);
process.exit(1);
