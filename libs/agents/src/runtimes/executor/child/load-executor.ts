import type { AgentExecutor } from '@a2a-js/sdk/server';
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import * as nodeModule from 'node:module';

const DEFAULT_MODULES = ['index.js', 'index.mjs', 'index.cjs'];

/** Returns the executor for one turn. */
export type ExecutorFactory = () => AgentExecutor;

/**
 * Loads the executor of an agent's folder. The default export (or `module.exports`) is an executor or a class. An
 * executor serves every turn. Of a class, every turn gets an instance of its own.
 *
 * @param folder absolute path of the agent's folder
 * @param module path of the module inside it; default `index.js`, `index.mjs` or `index.cjs`
 * @throws Error with the file and the problem
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

/** `file:line` of a syntax error; empty if it is unknown. */
async function placeOf(error: unknown, file: string): Promise<string> {
  if (!(error instanceof SyntaxError)) return '';
  const known = firstPlace(error.stack ?? '');
  if (known !== '') return known;
  // For ES modules Node reports the position only on the terminal.
  const checked = await promisify(execFile)(process.execPath, ['--check', file], { env: {} }).then(
    () => '',
    (failure: unknown) => String(property(failure, 'stderr')),
  );
  return firstPlace(checked);
}

const firstPlace = (text: string): string => /^(?:file:\/\/)?(\/.+:\d+)$/m.exec(text)?.[1] ?? '';

/** The default export of a module. TypeScript compiled to CommonJS has it one level deeper. */
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

interface Resolved {
  url: string;
  shortCircuit?: boolean;
}
type NextResolve = (specifier: string, context?: unknown) => Resolved;
type SyncResolve = (specifier: string, context: unknown, next: NextResolve) => Resolved;

/** Members that the types of Node 20 do not declare. */
interface NewerModule {
  /** Since Node 22.15: hooks for both `import` and `require`. */
  registerHooks?: (hooks: { resolve: SyncResolve }) => void;
  /** The function with which `require` finds a file. Node 20 has no public hook for it. */
  _resolveFilename: (request: string, ...rest: unknown[]) => string;
}

const newer = nodeModule.Module as unknown as NewerModule;
const isSdk = (specifier: string): boolean => /^@a2a-js\/sdk(\/|$)/.test(specifier);
let installed = false;

/**
 * Lets agents import the platform's `@a2a-js/sdk`, so an agent's folder needs no `node_modules` for it. A copy in or
 * above the folder has priority. The hook only acts where the resolution of the SDK would fail. Idempotent.
 */
export function installSdkFallback(): void {
  if (installed) return;
  installed = true;
  if (newer.registerHooks) newer.registerHooks({ resolve: resolveWithFallback });
  else installOnNode20();
}

const resolveWithFallback: SyncResolve = (specifier, context, next) => {
  try {
    return next(specifier, context);
  } catch (error) {
    return { url: pathToFileURL(platformFile(specifier, error)).href, shortCircuit: true };
  }
};

function installOnNode20(): void {
  const hooks = new URL('./sdk-fallback-hooks.js', pathToFileURL(__filename));
  nodeModule.register(hooks, { data: { platform: __filename } });
  const find = newer._resolveFilename;
  newer._resolveFilename = (request, ...rest) => {
    try {
      return find(request, ...rest);
    } catch (error) {
      return platformFile(request, error);
    }
  };
}

let asking = false;

/** The platform's file for a specifier of the SDK. Throws `error` for other specifiers, and if there is no such file. */
function platformFile(specifier: string, error: unknown): string {
  // `require.resolve` calls the hook again.
  if (asking || !isSdk(specifier)) throw error;
  asking = true;
  try {
    return require.resolve(specifier);
  } catch {
    throw error;
  } finally {
    asking = false;
  }
}
