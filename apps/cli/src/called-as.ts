import { basename, relative } from 'node:path';

/** What texts call the command line. */
const NAME = 'npx baton';

/**
 * How a person calls this program again: `npx baton`, `baton` from the PATH, or `node bin/baton.cjs` in a clone, which needs a tenth of
 * the CPU of npx.
 * @param script `process.argv[1]`
 */
export function calledAs(
  script: string,
  { npm_command: npmCommand }: NodeJS.ProcessEnv,
  folder = process.cwd(),
): string {
  if (npmCommand === 'exec') return NAME;
  return basename(script) === 'baton' ? 'baton' : `node ${relative(folder, script)}`;
}

/** The text with commands as the person calls them. */
export const inOwnCall = (text: string, call: string): string => text.replaceAll(`${NAME} `, `${call} `);
