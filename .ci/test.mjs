// Runs `npm run check` and all tests, or those that options of Jest select. The last line is `N passed, N failed`. The exit code
// is not 0 if anything failed, the checks included.
//
// If few files fail, they run a second time, one after the other, with nothing beside them. The run is good only if all that
// failed is then good. Each test that failed the first time gets a line FLAKY. It is a fault, of the test or of the code.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** If more files fail, this is no accident. */
const MAX_FILES = 3;

/**
 * Runs Jest. Not with `npm test`, which would build again what `npm ci` has built.
 * @returns its exit code, and the tests of each file by the file's path
 */
function runJest(...args) {
  const folder = mkdtempSync(join(tmpdir(), 'baton-results-'));
  const output = join(folder, 'results.json');
  try {
    const { status } = spawnSync('npx', ['jest', '--ci', '--json', `--outputFile=${output}`, ...args], {
      stdio: 'inherit',
    });
    const { testResults } = JSON.parse(readFileSync(output, 'utf8'));
    return {
      status,
      files: new Map(testResults.map((result) => [relative('.', result.name), testsOf(result)])),
    };
  } catch (error) {
    console.log(`Jest has left no results: ${error.message}`);
    return {
      status: 1,
      files: new Map([['(none)', [{ title: 'all tests', status: 'failed', hasRun: false }]]]),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The tests of a file. A file that fails while none of its tests does counts as one more: what surrounds its tests has failed. */
function testsOf({ name, status, message, assertionResults }) {
  const tests = assertionResults.map((test) => ({
    status: test.status,
    title: [relative('.', name), ...test.ancestorTitles, test.title].join(' › '),
    group: test.ancestorTitles.join(', '),
    message: test.failureMessages.join('\n'),
    hasRun: true,
  }));
  const isUntold = status === 'failed' && !tests.some(hasFailed);
  const around = {
    status: isUntold ? 'failed' : 'fine',
    title: relative('.', name),
    message,
    hasRun: tests.length > 0,
  };
  return [...tests, around];
}

/** A message of Jest without the packages in its stack. */
const ownLines = (message) =>
  stripVTControlCharacters(message)
    .split('\n')
    .filter((line) => !/^ +at .*(node_modules|node:internal|<anonymous>\))/.test(line))
    .map((line) => `    ${line}`)
    .join('\n');

const hasFailed = ({ status }) => status === 'failed';
const isGood = ({ status }) => status === 'passed' || status === 'fine';

/** Starts the checks. They use only what the tests leave of the CPU, which wait half of their time. Resolves with their exit code. */
function startChecks() {
  const folder = mkdtempSync(join(tmpdir(), 'baton-checks-'));
  const output = openSync(join(folder, 'output'), 'w+');
  const checks = spawn('nice', ['-n', '19', 'npm', 'run', 'check'], { stdio: ['ignore', output, output] });
  return once(checks, 'exit').then(([code]) => {
    process.stdout.write(`\n${readFileSync(join(folder, 'output'), 'utf8')}\n`);
    rmSync(folder, { recursive: true, force: true });
    return code;
  });
}

const checks = startChecks();
const { status, files } = runJest(...process.argv.slice(2));
let exitCode = status;
const failing = [...files].filter(([, tests]) => tests.some(hasFailed));
if (
  failing.length > 0 &&
  failing.length <= MAX_FILES &&
  failing.every(([, tests]) => tests.every(({ hasRun }) => hasRun))
) {
  const paths = failing.map(([path]) => path);
  console.log(`\nA second chance for ${paths.join(', ')}\n`);
  const second = runJest('--runInBand', '--runTestsByPath', ...paths);
  exitCode = second.status;
  for (const [path, before] of failing) {
    const tests = second.files.get(path) ?? [];
    for (const failed of before.filter(hasFailed)) {
      const now = tests.filter(({ title }) => title === failed.title);
      if (now.length > 0 && now.every(isGood)) {
        console.log(`\nFLAKY ${failed.title}: failed once, passed when its file ran again alone`);
        console.log(ownLines(failed.message));
      } else if (!now.some(hasFailed)) {
        // It is gone, or left out.
        tests.push(failed);
      }
    }
    files.set(path, tests);
  }
}

exitCode ||= await checks;

const all = [...files.values()].flat();
const leftOut = all.flatMap(({ group }) => (group?.includes('left out: ') ? group : []));
for (const group of new Set(leftOut)) console.log(group);
const failures = all.filter(hasFailed).length;
console.log(`${all.filter(({ status }) => status === 'passed').length} passed, ${failures} failed`);
process.exitCode = exitCode || failures > 0 ? 1 : 0;
