import type { AgentExecutor } from '@a2a-js/sdk/server';
import { execFile } from 'node:child_process';
import { realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import * as nodeModule from 'node:module';
import type { LoadFault } from '../protocol.js';
import { LoadError, type Place } from './load-error.js';

const DEFAULT_MODULES = ['index.js', 'index.mjs', 'index.cjs', 'index.ts', 'index.mts', 'index.cts'];
const TYPESCRIPT = /\.[cm]?ts$/;

/** Returns the executor for one turn. */
export type ExecutorFactory = () => AgentExecutor;

/**
 * Where in the agent's folder an error of `loadExecutor`, or of a constructor, comes from.
 * @param folder absolute path of the agent's folder
 */
export async function loadFaultOf(error: unknown, folder: string): Promise<LoadFault> {
  const text = error instanceof LoadError ? error.reason : messageOf(error);
  const place = error instanceof LoadError ? error.place : await frameIn(folder, error);
  const real = await realpath(folder).catch(() => folder);
  // A module that is found through a link has its real path in stacks.
  const base = place?.file.startsWith(real + sep) ? real : folder;
  return {
    file: place ? relative(base, place.file) : '',
    ...(place?.line !== undefined && { line: place.line }),
    reason: text.slice(0, MAX_REASON),
  };
}

const MAX_REASON = 1000;
const MAX_STACK = 10_000;

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

/** Where a syntax error is; undefined if that is unknown. */
async function placeOfSyntax(error: SyntaxError, file: string): Promise<Place | undefined> {
  const known = firstPlace(error.stack ?? '');
  if (known) return known;
  // Node cannot check TypeScript.
  if (TYPESCRIPT.test(file)) return undefined;
  // For ES modules Node reports the position only on the terminal.
  const checked = await promisify(execFile)(process.execPath, ['--check', file], { env: {} }).then(
    () => '',
    (failure: unknown) => String(property(failure, 'stderr')),
  );
  return firstPlace(checked);
}

function firstPlace(text: string): Place | undefined {
  const found = /^(?:file:\/\/)?(\/.+):(\d+)$/m.exec(text);
  return found?.[1] === undefined ? undefined : { file: found[1], line: Number(found[2]) };
}

/** The innermost frame of an error's stack that is in the agent's folder. */
async function frameIn(folder: string, error: unknown): Promise<Place | undefined> {
  const stack = property(error, 'stack');
  if (typeof stack !== 'string') return undefined;
  const real = await realpath(folder).catch(() => folder);
  for (const [, url, line] of stack
    .slice(0, MAX_STACK)
    .matchAll(/^ +at .*?((?:file:\/\/)?\/[^()\n]+):(\d+):\d+\)?$/gm)) {
    const file = url?.startsWith('file://') ? fileURLToPath(url) : (url ?? '');
    if (file.startsWith(folder + sep) || file.startsWith(real + sep)) return { file, line: Number(line) };
  }
  return undefined;
}

/** As in `@baton/telemetry`, which the process of an agent does not load. */
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The default export of a module. TypeScript compiled to CommonJS has it one level deeper. */
export function defaultExport(module: unknown): unknown {
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
    if (!isMethod(value, name)) throw new LoadError(file, `its default export has no ${name}()`);
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
/** The package `@baton/agent`, which agents import. */
const AUTHOR_MODULE = join(__dirname, '../../../author/index.js');
let installed = false;

/**
 * Lets agents import the platform's `@a2a-js/sdk` and `@baton/agent`, so an agent's folder needs no `node_modules` for
 * them. A copy in or above the folder has priority. The hook only acts where the resolution would fail. Idempotent.
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
  nodeModule.register(hooks, { data: { platform: __filename, author: AUTHOR_MODULE } });
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

/** The platform's file for a specifier of the SDK, or for `@baton/agent`. Throws `error` for other specifiers, and if there is no such file. */
function platformFile(specifier: string, error: unknown): string {
  if (specifier === '@baton/agent') return AUTHOR_MODULE;
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
