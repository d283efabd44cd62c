import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

const SCRIPT = join(__dirname, '../../.ci/test.mjs');
const DAY_MS = 24 * 3600 * 1000;

/** A date as `quarantine.json` has it. */
const daysAgo = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

const entry = (title: string, days = 1) => ({ title, since: daysAgo(days), reason: 'it races' });

describe('.ci/test.mjs', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'ci-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const command = (path: string, code: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), `#!/usr/bin/env node\n${code}`, { mode: 0o755 });
  };

  interface Given {
    /** Whether each test of the file `a.spec.ts` passes. */
    tests: Record<string, boolean>;
    quarantine?: unknown[];
    /** Whether the file has failed, though none of its tests need have. */
    fileFails?: boolean;
    checksExitCode?: number;
    jestExitCode?: number;
    /** What Jest says of the file. */
    message?: string;
    /** Whether each test passes when the file runs by its path. */
    testsOfSecondRun?: Record<string, boolean>;
  }

  /** Runs the script where Jest leaves these results. */
  function run(given: Given) {
    const { tests, quarantine = [], fileFails, checksExitCode = 0, jestExitCode, message = '' } = given;
    const isBad = fileFails ?? Object.values(tests).includes(false);
    const resultsOf = (passing: Record<string, boolean>, status: string) => ({
      testResults: [
        {
          name: join(folder, 'a.spec.ts'),
          status,
          message,
          assertionResults: Object.entries(passing).map(([title, passes]) => ({
            ancestorTitles: ['the log'],
            title,
            status: passes ? 'passed' : 'failed',
          })),
        },
      ],
    });
    const results = resultsOf(tests, isBad ? 'failed' : 'passed');
    const second = resultsOf(given.testsOfSecondRun ?? {}, 'passed');
    command(
      'node_modules/jest/bin/jest.js',
      `const output = process.argv.find((arg) => arg.startsWith('--outputFile=')).slice(13);
      console.log('jest runs');
      const isSecond = process.argv.includes('--runTestsByPath');
      const results = isSecond ? ${JSON.stringify(JSON.stringify(second))} : ${JSON.stringify(JSON.stringify(results))};
      require('node:fs').writeFileSync(output, results);
      process.exit(${jestExitCode ?? (isBad ? 1 : 0)})`,
    );
    command('npm', `console.log('checks run'); process.exit(${checksExitCode})`);
    cpSync(SCRIPT, join(folder, 'test.mjs'));
    writeFileSync(join(folder, 'quarantine.json'), JSON.stringify(quarantine));
    const { status, stdout } = spawnSync(process.execPath, ['test.mjs'], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}` },
    });
    return { status, lines: stdout.trimEnd().split('\n') };
  }

  it('runs the checks and then the tests, and ends with the number of both kinds', () => {
    const { status, lines } = run({ tests: { grows: true } });
    expect(lines).toEqual(['checks run', 'jest runs', '1 passed, 0 failed']);
    expect(status).toBe(0);
  });

  it('fails for a test that fails, without a second run', () => {
    const { status, lines } = run({ tests: { grows: true, ends: false } });
    expect(lines.slice(1)).toEqual(['jest runs', 'FAILED a.spec.ts › the log › ends', '1 passed, 1 failed']);
    expect(status).toBe(1);
  });

  it('is good if only tests in quarantine fail, and names them', () => {
    const quarantine = [entry('a.spec.ts › the log › ends')];
    const { status, lines } = run({ tests: { grows: true, ends: false }, quarantine });
    expect(lines.slice(-2)).toEqual([
      `QUARANTINED a.spec.ts › the log › ends: failed. Since ${daysAgo(1)}: it races`,
      '1 passed, 0 failed',
    ]);
    expect(status).toBe(0);
  });

  it('fails for a test beside one in quarantine', () => {
    const quarantine = [entry('a.spec.ts › the log › ends')];
    expect(run({ tests: { grows: false, ends: false }, quarantine }).status).toBe(1);
  });

  it('fails for an entry that is older than 30 days, also if its test passes', () => {
    const tests = { ends: true };
    expect(run({ tests, quarantine: [entry('a.spec.ts › the log › ends', 29)] }).status).toBe(0);
    const { status, lines } = run({ tests, quarantine: [entry('a.spec.ts › the log › ends', 32)] });
    expect(lines.at(-2)).toContain('EXPIRED a.spec.ts › the log › ends');
    expect(status).toBe(1);
  });

  it('fails for an entry without a reason or a date', () => {
    expect(run({ tests: {}, quarantine: [{ title: 'a', since: daysAgo(1) }] }).status).toBe(1);
    expect(run({ tests: {}, quarantine: [{ title: 'a', since: 'soon', reason: 'it races' }] }).status).toBe(
      1,
    );
  });

  it('fails for checks that fail', () => {
    const { status, lines } = run({ tests: { grows: true }, checksExitCode: 1 });
    expect(lines.slice(-2)).toEqual([
      '`npm run check` failed: see its output before that of the tests.',
      '1 passed, 0 failed',
    ]);
    expect(status).toBe(1);
  });

  it('fails for a file whose cleaning up fails, and for a run of Jest that fails without a failed test', () => {
    expect(run({ tests: { grows: true }, fileFails: true }).lines.at(-1)).toBe('1 passed, 1 failed');
    expect(run({ tests: { grows: true }, jestExitCode: 1 }).status).toBe(1);
  });

  it('fails when a process of Jest crashes, and runs its file once more while that is in quarantine', () => {
    const crash =
      'A jest worker process (pid=1) was terminated by another process: signal=SIGABRT, exitCode=null.';
    const given = { tests: {}, fileFails: true, message: crash, testsOfSecondRun: { 'keeps order': true } };
    const title = 'a process of Jest: SIGABRT';
    expect(run(given)).toMatchObject({ status: 1, lines: expect.arrayContaining([`FAILED ${title}`]) });
    const again = run({ ...given, quarantine: [entry(title)] });
    expect(again.status).toBe(0);
    expect(again.lines.at(-1)).toBe('1 passed, 0 failed');
    const failing = run({ ...given, quarantine: [entry(title)], testsOfSecondRun: { 'keeps order': false } });
    expect(failing.status).toBe(1);
  });
});
