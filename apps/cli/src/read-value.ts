import { readFileSync } from 'node:fs';
import type { Cli } from './cli.js';
import { OperatorError } from './operator-error.js';

/**
 * The value of a secret: of a file, or what comes over standard input. One line break at its end is left out:
 * editors and `echo` put it there. Throws OperatorError if there is none to be read.
 *
 * Never an argument: every user of the machine sees those, and the shell remembers them.
 */
export async function readValue({ stdin }: Pick<Cli, 'stdin'>, file: string | undefined): Promise<string> {
  const text = file === undefined ? await readInput(stdin) : readText(file);
  return text.replace(/\r?\n$/, '');
}

async function readInput(stdin: Cli['stdin']): Promise<string> {
  const input = stdin();
  if (input.isTTY) {
    throw new OperatorError(
      'The value comes from standard input or a file, so that nobody sees it: use `… < file`, a pipe, or --file <path>.',
    );
  }
  const chunks: Buffer[] = [];
  for await (const chunk of input) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(
      `${file} can not be read (${code ?? 'unknown reason'}): name a file that can be.`,
    );
  }
}
