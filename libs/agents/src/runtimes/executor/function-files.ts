import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** The folder with the functions of an llm agent, each in a file of its own. */
export const TOOLS_FOLDER = 'tools';

const MODULE = /^[^._].*\.[cm]?[jt]s$/;
const NO_FUNCTION = /\.((test|spec)\.[cm]?[jt]s|d\.[cm]?ts)$/;

/**
 * The modules in `tools/` of an agent's folder, without tests and declarations, and without those whose name begins with `_` or `.`.
 * @param folder absolute path of the agent's folder
 * @returns paths inside of it, sorted; none: it has no such folder
 */
export async function functionFiles(folder: string): Promise<string[]> {
  const names = await readdir(join(folder, TOOLS_FOLDER)).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  });
  const modules = names.filter((name) => MODULE.test(name) && !NO_FUNCTION.test(name)).sort();
  return modules.map((name) => join(TOOLS_FOLDER, name));
}
