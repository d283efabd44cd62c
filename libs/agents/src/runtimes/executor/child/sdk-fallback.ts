import * as nodeModule from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

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
