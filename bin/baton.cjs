#!/usr/bin/env node
// The command line in a clone. This file is there before the build is, or npx would link to nothing and never look again.
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const main = join(__dirname, '../dist/apps/cli/src/main.js');
if (existsSync(main)) {
  require(main);
} else {
  console.error('Baton is not built: run `npm ci` or `npm run build` first.');
  process.exitCode = 1;
}
