import type { AgentExecutor } from '@a2a-js/sdk/server';
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { installSdkFallback } from './sdk-fallback.js';

const DEFAULT_MODULES = ['index.js', 'index.mjs', 'index.cjs'];

/** Gives the executor for one turn. */
export type ExecutorFactory = () => AgentExecutor;

/**
 * Load the executor of an agent's folder. Its default export (or `module.exports`) is an executor, which then
 * serves every turn, or a class of executors, of which every turn gets its own.
 *
 * @param folder absolute path of the agent's folder
 * @param module path of the module inside it; `index.js`, `index.mjs` or `index.cjs` if not given
 * @throws Error naming the file and what is wrong with it
 */
export async function loadExecutor(folder: string, module?: string): Promise<ExecutorFactory> {
  const file = await findModule(folder, module);
  installSdkFallback();
  const exported = defaultExport(await importModule(file));
  if (exported === undefined) {
    throw new Error(`${file}: has no default export; export the executor or its class as default`);
  }
  if (!isClass(exported)) {
    const executor = assertExecutor(exported, file);
    return () => executor;
  }
  // A class may declare its methods as fields, so only an instance can be checked.
  return () => assertExecutor(new exported(), file);
}

async function findModule(folder: string, module: string | undefined): Promise<string> {
  const names = module === undefined ? DEFAULT_MODULES : [module];
  for (const name of names) {
    const file = join(folder, name);
    if (
      await stat(file).then(
        (found) => found.isFile(),
        () => false,
      )
    )
      return file;
  }
  throw new Error(`${folder}: has no module ${names.join(', ')}; TypeScript must be compiled first`);
}

async function importModule(file: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const place = await placeOf(error, file);
    throw new Error(`${file}: could not be loaded: ${reason}${place && ` (${place})`}`, { cause: error });
  }
}

/** `file:line` of what could not be parsed or linked; empty if it is not known. */
async function placeOf(error: unknown, file: string): Promise<string> {
  if (!(error instanceof SyntaxError)) return '';
  const known = firstPlace(error.stack ?? '');
  if (known !== '') return known;
  // For ES modules Node tells it to nobody but the terminal.
  const checked = await promisify(execFile)(process.execPath, ['--check', file], { env: {} }).then(
    () => '',
    (failure: unknown) => String(property(failure, 'stderr')),
  );
  return firstPlace(checked);
}

const firstPlace = (text: string): string => /^(?:file:\/\/)?(\/.+:\d+)$/m.exec(text)?.[1] ?? '';

/** What a module exports by default; one compiled from TypeScript to CommonJS has it a level deeper. */
function defaultExport(module: unknown): unknown {
  const exported = property(module, 'default');
  return property(exported, '__esModule') === true ? property(exported, 'default') : exported;
}

const property = (value: unknown, key: string): unknown =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'
    ? (value as Record<string, unknown>)[key]
    : undefined;

function isClass(value: unknown): value is new () => unknown {
  if (typeof value !== 'function') return false;
  return (
    /^class\b/.test(Function.prototype.toString.call(value)) ||
    isMethod(property(value, 'prototype'), 'execute')
  );
}

const isMethod = (value: unknown, name: string): boolean => typeof property(value, name) === 'function';

function assertExecutor(value: unknown, file: string): AgentExecutor {
  for (const name of ['execute', 'cancelTask']) {
    if (!isMethod(value, name)) throw new Error(`${file}: its default export has no ${name}()`);
  }
  return value as AgentExecutor;
}
