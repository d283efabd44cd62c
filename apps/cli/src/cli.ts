import type { EnvironmentSource } from '@baton/config';
import { readFileSync } from 'node:fs';
import type { Writable } from 'node:stream';
import type { Terminal } from './output.js';
import { OperatorError } from './operator-error.js';

/** What a command has to work with besides its arguments. */
export interface Cli {
  /** The environment variables. */
  source: EnvironmentSource;
  terminal: Terminal;
  /** Standard input; asked for only by commands that read it. */
  stdin: () => AsyncIterable<string | Uint8Array> & { isTTY?: boolean };
  /** Standard output for bytes. Default: that of the process. */
  stdout?: () => Writable & { isTTY?: boolean };
}

/** The option that every command has. */
export interface JsonOption {
  /** Also true with `--output json` and `--output yaml` (program.ts). */
  json?: boolean;
}

export const JSON_OPTION = ['--json', 'print JSON instead of text: the same as --output json'] as const;

/**
 * A small JSON object that `npm start` keeps in its folder; undefined if there is no such file. Throws
 * OperatorError for one that can't be read.
 */
export function readStateFile(path: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === 'EACCES')
      throw new OperatorError(`${path} cannot be read: run this as the user who started Baton.`);
  }
  throw new OperatorError(`${path} is damaged: run \`npm start\` again, which writes it again.`);
}
