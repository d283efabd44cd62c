import type { AgentExecutor } from '@a2a-js/sdk/server';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LoadError } from './load-error.js';
import { frameIn, messageOf, placeOfSyntax, TYPESCRIPT } from './load-fault.js';
import { property } from './property.js';
import { installSdkFallback } from './sdk-fallback.js';

const DEFAULT_MODULES = ['index.js', 'index.mjs', 'index.cjs', 'index.ts', 'index.mts', 'index.cts'];

/** Returns the executor for one turn. */
export type ExecutorFactory = () => AgentExecutor;

/**
 * Loads the executor of an agent's folder. The default export (or `module.exports`) is an executor or a class. An executor serves
 * every turn. If it is a class, every turn gets its own instance. TypeScript runs without a build and without a check of types.
 * Stacks then name its files and lines.
 *
 * @param folder absolute path of the agent's folder
 * @param module path of the module inside it; default: `index` as JavaScript, else as TypeScript
 * @throws Error with the file and the problem; `loadFaultOf` reads it
 */
export async function loadExecutor(folder: string, module?: string): Promise<ExecutorFactory> {
  const file = await findModule(folder, module);
  const exported = defaultExport(await importModule(file, folder));
  if (exported === undefined) {
    throw new LoadError(file, 'has no default export; export the executor or its class as default');
  }
  if (!isClass(exported)) {
    const executor = assertExecutor(exported, file);
    return () => executor;
  }
  // A class may declare its methods as fields, so the check needs an instance.
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
  throw new LoadError(folder, `has no module ${names.join(', ')}`);
}

let readsTypeScript = false;

/** Lets `import` and `require` read TypeScript. It takes a tenth of a second, so only agents in TypeScript pay. */
async function installTypeScript(): Promise<void> {
  if (readsTypeScript) return;
  readsTypeScript = true;
  const { register: registerImport } = await import('tsx/esm/api');
  const { register: registerRequire } = await import('tsx/cjs/api');
  registerRequire();
  registerImport();
  process.setSourceMapsEnabled(true);
}

/** Imports a module of an agent, also one in TypeScript. Rejects with the error of the module; a syntax error names its line. */
export async function importModule(file: string, folder: string): Promise<unknown> {
  if (TYPESCRIPT.test(file)) await installTypeScript();
  installSdkFallback();
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    const [, place, line, problem] = TRANSFORM_ERROR.exec(messageOf(error)) ?? [];
    if (place !== undefined) {
      throw new LoadError(
        file,
        `could not be loaded: ${problem}`,
        { file: place, line: Number(line) },
        error,
      );
    }
    const known =
      error instanceof SyntaxError ? await placeOfSyntax(error, file) : await frameIn(folder, error);
    throw new LoadError(file, `could not be loaded: ${messageOf(error)}`, known, error);
  }
}

/** An error of esbuild in TypeScript. */
const TRANSFORM_ERROR = /^(\/.+):(\d+):\d+: ERROR: (.+)$/m;

/** The default export of a module. TypeScript compiled to CommonJS has it one level deeper. */
export function defaultExport(module: unknown): unknown {
  const exported = property(module, 'default');
  return property(exported, '__esModule') === true ? property(exported, 'default') : exported;
}

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
    if (!isMethod(value, name)) throw new LoadError(file, `its default export has no ${name}()`);
  }
  return value as AgentExecutor;
}
