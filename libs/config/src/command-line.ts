import { existsSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

/** The command line in a clone. It starts in a tenth of the time of npx. */
const IN_CLONE = 'bin/baton.cjs';
/** The command line in the image, which has no folder `bin`. */
const IN_IMAGE = 'dist/apps/cli/src/main.js';
const BY_NPX = 'npx baton';

/**
 * How a person calls the command line of this Baton. Texts of every process name it this way.
 * @param script `process.argv[1]`
 * @param folder the folder in which the process was started
 */
export function commandLineOf(script: string, folder: string): string {
  const isInstalled = script.includes('node_modules');
  if (basename(script) === 'baton' && !isInstalled) return 'baton';
  const program = [IN_CLONE, IN_IMAGE].find((path) => existsSync(join(folder, path)));
  if (program !== undefined) return `node ${program}`;
  const isCommandLine = [IN_CLONE, IN_IMAGE].some((path) => script.endsWith(`/${path}`));
  return isCommandLine && !isInstalled ? `node ${relative(folder, script)}` : BY_NPX;
}

/** How a person calls the command line of this Baton, such as `node bin/baton.cjs`. */
export const COMMAND_LINE = commandLineOf(process.argv[1] ?? '', process.cwd());

const OF_SERVERS = [BY_NPX, `node ${IN_CLONE}`, `node ${IN_IMAGE}`];

/** The text with commands as they are called here. A server writes them as they are called on its own machine. */
export const withCommandLine = (text: string, commandLine = COMMAND_LINE): string =>
  OF_SERVERS.reduce((written, other) => written.replaceAll(`${other} `, `${commandLine} `), text);
