import type { SchemaEngine } from '@prisma/schema-engine-wasm';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

let engineGlue: Promise<EngineGlue> | undefined;

/** Prisma's schema engine, without its native binary; one instance a process, for its JavaScript half has room for one. */
export const loadSchemaEngine = (): Promise<EngineGlue> => (engineGlue ??= instantiateEngine());

/** The WebAssembly half of the module is instantiated by hand: Node cannot import it as the package does. */
async function instantiateEngine(): Promise<EngineGlue> {
  const glue = (await import('@prisma/schema-engine-wasm/schema_engine_bg')) as unknown as EngineGlue;
  const folder = dirname(require.resolve('@prisma/schema-engine-wasm/schema_engine_bg'));
  const binary = readFileSync(join(folder, 'schema_engine_bg.wasm'));
  const { instance } = await WebAssembly.instantiate(binary, {
    './schema_engine_bg.js': withoutTimers(glue),
  });
  glue.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
  return glue;
}

/** The engine leaves a timer of ten seconds behind, which must not keep a process alive that is done. */
function withoutTimers(glue: EngineGlue): object {
  const timers = Object.entries(glue).filter(([name]) => name.startsWith('__wbg_setTimeout'));
  return {
    ...glue,
    ...Object.fromEntries(
      timers.map(([name, set]) => [name, (...given: unknown[]) => (set as SetTimer)(...given).unref()]),
    ),
  };
}

type SetTimer = (...given: unknown[]) => NodeJS.Timeout;

interface EngineGlue {
  SchemaEngine: typeof SchemaEngine;
  __wbg_set_wasm(exports: object): void;
}

/** As far as it is needed here; TypeScript has its types among those of the browser only. */
declare const WebAssembly: {
  instantiate(
    binary: Uint8Array,
    imports: Record<string, object>,
  ): Promise<{ instance: { exports: { __wbindgen_start(): void } } }>;
};
