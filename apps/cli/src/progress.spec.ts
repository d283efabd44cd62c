import { PassThrough } from 'node:stream';
import { withProgress } from './progress.js';

const MIB = 1024 * 1024;

/** What is shown while a file is read of which a MiB comes every second. @param isTTY of the error stream */
async function shown(seconds: number, isTTY: boolean, total?: number): Promise<string> {
  jest.useFakeTimers();
  try {
    const written: string[] = [];
    const stream = Object.assign(new PassThrough(), {
      isTTY,
      columns: 80,
      cursorTo: () => true,
      clearLine: () => true,
    });
    stream.on('data', (text: Buffer) => written.push(text.toString()));
    const progress = stream as unknown as NodeJS.WriteStream;
    const terminal = { out: () => undefined, err: () => undefined, progress };
    let done = 0;
    const work = async (): Promise<string> => {
      for (let second = 0; second < seconds; second += 1) {
        await jest.advanceTimersByTimeAsync(1_000);
        done += MIB;
      }
      return 'done';
    };
    const source = { done: () => done, ...(total !== undefined && { total }) };
    expect(await withProgress(terminal, 'Importing', source, work)).toBe('done');
    return written.join('');
  } finally {
    jest.useRealTimers();
  }
}

it('shows how far a long command has come, on a terminal alone', async () => {
  expect(await shown(4, true, 4 * MIB)).toMatch(/Importing .*% of 4 MiB/);
  expect(await shown(4, true)).toMatch(/Importing \d MiB/);
  expect(await shown(4, false, 4 * MIB)).toBe('');
  expect(await shown(0, true, 4 * MIB)).not.toContain('Importing');
});
