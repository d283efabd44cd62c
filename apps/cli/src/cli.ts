import type { EnvironmentSource } from '@baton/config';
import type { Writable } from 'node:stream';
import type { Terminal } from './output.js';

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
