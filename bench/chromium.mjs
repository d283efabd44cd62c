// Chromium for benchmarks of the console: CHROMIUM_PATH, or the first on PATH.
import { chromium } from 'playwright-core';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];

function find() {
  const onPath = (process.env.PATH ?? '').split(delimiter);
  const files = NAMES.flatMap((name) => onPath.map((folder) => join(folder, name)));
  for (const file of [process.env.CHROMIUM_PATH ?? [], files].flat()) {
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Another one, then.
    }
  }
  throw new Error('There is no Chromium here: install it, or set CHROMIUM_PATH.');
}

export const startChromium = (...args) =>
  chromium.launch({ executablePath: find(), args: ['--disable-dev-shm-usage', ...args] });

/** Runs in a page before all its scripts: signs in with a token. */
export const signIn = (token) =>
  `sessionStorage.setItem('baton.session', ${JSON.stringify(JSON.stringify({ kind: 'token', token }))});`;
