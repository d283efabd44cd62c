import { type InitializeHook, type ResolveHook, createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/** Module hooks for Node 20, which runs them on a separate thread: see `installSdkFallback` in `sdk-fallback.ts`. */
let platform: NodeJS.Require;
let author: string;

export const initialize: InitializeHook<{ platform: string; author: string }> = (data) => {
  platform = createRequire(data.platform);
  ({ author } = data);
};

export const resolve: ResolveHook = async (specifier, context, next) => {
  try {
    return await next(specifier, context);
  } catch (error) {
    if (specifier === '@baton/agent') return { url: pathToFileURL(author).href, shortCircuit: true };
    if (!/^@a2a-js\/sdk(\/|$)/.test(specifier)) throw error;
    return { url: pathToFileURL(platform.resolve(specifier)).href, shortCircuit: true };
  }
};
