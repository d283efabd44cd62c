import * as nodeModule from 'node:module';
import { pathToFileURL } from 'node:url';

interface Resolved {
  url: string;
  shortCircuit?: boolean;
}
type NextResolve = (specifier: string, context?: unknown) => Resolved;
type SyncResolve = (specifier: string, context: unknown, next: NextResolve) => Resolved;

/** What the typings of Node 20 lack. */
interface NewerModule {
  /** From Node 22.15 on: hooks for `import` and `require` alike. */
  registerHooks?: (hooks: { resolve: SyncResolve }) => void;
  /** How `require` finds a file, in every version; Node 20 has no public hook for it. */
  _resolveFilename: (request: string, ...rest: unknown[]) => string;
}

const newer = nodeModule.Module as unknown as NewerModule;
const isSdk = (specifier: string): boolean => /^@a2a-js\/sdk(\/|$)/.test(specifier);
let installed = false;

/**
 * Let modules that have no `@a2a-js/sdk` of their own use the platform's: an agent's folder then needs no
 * `node_modules` for it. A copy that is installed in or above the folder is preferred. Changes the resolution
 * of nothing else, and only where it would have failed. Idempotent.
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

/** The platform's file for a specifier of the SDK. Throws `error` for any other, and if there is none. */
function platformFile(specifier: string, error: unknown): string {
  // The question itself goes through the hook again.
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
