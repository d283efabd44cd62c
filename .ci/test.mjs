// Runs `npm run check`, then the tests of `npm test`, or those that options of Jest select. The last line is `N passed, N failed`. The exit code
// is not 0 if anything failed, the checks included. No test that has failed runs twice.
//
// The checks run first, alone: the tests keep all cores busy, and beside them oxlint took 34 minutes instead of half a minute.
//
// `quarantine.json` beside this file lists tests that may fail. Each entry has the `title` that this script prints for a failed
// test, `since` (the date, such as 2026-11-26) and the `reason`. An entry that is older than 30 days fails the run.
//
// A process of Jest that crashes has judged no test of its file. It counts as the failed test `a process of Jest: SIGABRT`. While that
// is in quarantine, the file runs once more.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

const JEST = 'node_modules/jest/bin/jest.js';
const MAX_QUARANTINE_DAYS = 30;
/** Those of `npm test`: all but `nightly`. */
const PROJECTS = ['--selectProjects', 'unit', 'integration', 'e2e'];
const DAY_MS = 24 * 3600 * 1000;
/**
 * Workers of Jest inherit them, processes that tests start do not. New objects get four times the default room: twice saves 8 % of
 * Jest's CPU time, and four times another 4 %. In Node.js 20 V8 compiles each function simply at its first call, and optimizes only
 * one that runs long: that saves 8 %. Later releases do not have the second flag.
 */
const OPTIONS_OF_NODE = [
  '--max-semi-space-size=64',
  ...(Number.parseInt(process.versions.v8) < 12 ? ['--always-sparkplug', '--interrupt-budget=1000000'] : []),
];

/**
 * Runs Jest. Not with `npm test`, which would build again what `npm ci` has built.
 * @returns its exit code and all tests
 */
function runJest(...args) {
  const folder = mkdtempSync(join(tmpdir(), 'baton-results-'));
  const output = join(folder, 'results.json');
  try {
    const options = ['--ci', '--json', `--outputFile=${output}`, ...args];
    const { status } = spawnSync(process.execPath, [...OPTIONS_OF_NODE, JEST, ...options], {
      stdio: 'inherit',
    });
    const { testResults } = JSON.parse(readFileSync(output, 'utf8'));
    return { status, tests: testResults.flatMap(testsOf) };
  } catch (error) {
    console.log(`Jest has left no results: ${error.message}`);
    return { status: 1, tests: [{ title: 'all tests', status: 'failed' }] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The tests of a file. A file that fails while none of its tests does counts as one more: what surrounds its tests has failed. */
function testsOf({ name, status, message, assertionResults }) {
  const signal =
    assertionResults.length === 0 && /terminated by another process: signal=(SIG\w+)/.exec(message)?.[1];
  if (signal) return [{ status, title: `a process of Jest: ${signal}`, crashed: name }];
  const tests = assertionResults.map((test) => ({
    status: test.status,
    title: [relative('.', name), ...test.ancestorTitles, test.title].join(' › '),
    group: test.ancestorTitles.join(', '),
  }));
  const isUntold = status === 'failed' && !tests.some(hasFailed);
  return isUntold ? [...tests, { status, title: relative('.', name) }] : tests;
}

const hasFailed = ({ status }) => status === 'failed';

/** The entries of `quarantine.json`. Throws if one is incomplete. */
function readQuarantine() {
  const entries = JSON.parse(readFileSync(new URL('quarantine.json', import.meta.url), 'utf8'));
  for (const { title, since, reason } of entries) {
    if (!title || !reason || Number.isNaN(Date.parse(since)))
      throw new Error(`quarantine.json: the entry ${title} needs a title, a date \`since\` and a reason`);
  }
  return entries;
}

const quarantine = readQuarantine();
const expired = quarantine.filter(
  ({ since }) => Date.now() - Date.parse(since) > MAX_QUARANTINE_DAYS * DAY_MS,
);
const checks = spawnSync('npm', ['run', 'check'], { stdio: 'inherit' });
const options = process.argv.slice(2);
const jest = runJest(...(options.length > 0 ? options : PROJECTS));

const leftOut = jest.tests.flatMap(({ group }) => (group?.includes('left out: ') ? group : []));
for (const group of new Set(leftOut)) console.log(group);

const entryOf = ({ title }) => quarantine.find((entry) => entry.title === title);
const crashed = jest.tests.filter((test) => test.crashed && entryOf(test)).map((test) => test.crashed);
if (crashed.length > 0) {
  console.log(`\nOnce more, because a process of Jest crashed: ${crashed.join(', ')}\n`);
  jest.tests.push(...runJest('--runTestsByPath', ...crashed).tests);
}
const failed = jest.tests.filter(hasFailed);
const failures = failed.filter((test) => !entryOf(test));
for (const { title } of failures) console.log(`FAILED ${title}`);
for (const test of failed) {
  const entry = entryOf(test);
  if (entry) console.log(`QUARANTINED ${entry.title}: failed. Since ${entry.since}: ${entry.reason}`);
}
for (const { title, since } of expired) {
  console.log(
    `EXPIRED ${title}: in quarantine since ${since}, longer than ${MAX_QUARANTINE_DAYS} days. Mend it, or delete it.`,
  );
}
if (checks.status !== 0) console.log('`npm run check` failed: see its output before that of the tests.');
console.log(
  `${jest.tests.filter(({ status }) => status === 'passed').length} passed, ${failures.length} failed`,
);

// Jest also fails for reasons that no test shows, such as services that do not stop.
const isUnexplained = jest.status !== 0 && failed.length === 0;
const isGood = checks.status === 0 && failures.length === 0 && expired.length === 0 && !isUnexplained;
process.exitCode = isGood ? 0 : 1;
