import { readFileSync, readdirSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { parse } from 'yaml';
import { RefusedError, UnreachableError } from './a2a/fetch.js';
import { OperatorError } from './operator-error.js';

const ENDINGS = new Set(['.yaml', '.yml', '.json']);

/** What stands in an agent's file, not checked yet. Throws OperatorError that begins with the file's path. */
export const readAgentFile = (file: string): Promise<unknown> =>
  ofFile<unknown>(file, () => parse(readText(file)));

/** The files that paths name: a folder stands for the agent files in it, by name. Throws OperatorError. */
export function agentFilesIn(paths: readonly string[]): string[] {
  const files = paths.flatMap((path) => {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path];
    const found = readdirSync(path).filter((name) => ENDINGS.has(extname(name)));
    if (found.length === 0) throw new OperatorError(`${path}: there is no .yaml, .yml or .json file in it.`);
    return found.sort().map((name) => join(path, name));
  });
  return [...new Set(files)];
}

/** Whatever goes wrong in `work` is said of the file, in one line. */
export async function ofFile<T>(file: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // That the server is away has nothing to do with the file.
    if (error instanceof UnreachableError) throw error;
    // A YAML error shows the line below its first sentence.
    const [reason = ''] = reasonOf(error).split('\n');
    throw new OperatorError(`${file}: ${reason.replace(/[:.]$/, '')}.`, { cause: error });
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof RefusedError) return error.reason;
  return error instanceof Error ? error.message : String(error);
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT' ? 'there is no such file' : `it can not be read (${code ?? 'unknown reason'})`;
    throw new Error(reason, { cause: error });
  }
}
