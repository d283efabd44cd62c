// Loaded into an API or a worker of a test with --require. Such a process ends before V8 has saved what it spends on code. Two things
// make that less:
// - V8 optimizes only what runs long.
// - The functions that such a process has run in its first seconds are in the code cache of those that start later in the same run of
//   Jest. The code cache of the build has what runs while modules are loaded.
const { existsSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const v8 = require('node:v8');
const vm = require('node:vm');

const { setFlagsFromString } = v8;
const { Script } = vm;
const WRITE_AFTER_MS = 8000;
/** A test that freezes event loops sets this to less. Writing the cache stops the event loop for some 100 ms. */
const mayPause = Number(process.env.LOOP_STALL_MS) >= 60_000;
const OPTIMIZE_LATER = '--interrupt-budget=1000000';
/** The default of V8. */
const OPTIMIZE = '--interrupt-budget=67584';

// Later releases than Node.js 20 do not have the flag: see bundle.mjs, which sets it, too.
if (Number.parseInt(process.versions.v8) < 12) {
  v8.setFlagsFromString = (flag) => {
    if (flag.startsWith('--interrupt-budget=')) return;
    setFlagsFromString(flag);
    // With other flags V8 refuses the code cache. A program sets this one when it has read the cache, before its modules run.
    if (flag === '--heap-growing-percent=0') setFlagsFromString(OPTIMIZE_LATER);
  };
  if (process.env.TEST_CODE_CACHE) vm.Script = ScriptWithCache;
}

function ScriptWithCache(source, options) {
  if (!options?.cachedData) return new Script(source, options);
  const file = join(process.env.TEST_CODE_CACHE, encodeURIComponent(options.filename));
  if (existsSync(file)) return new Script(source, { ...options, cachedData: readFileSync(file) });
  const script = new Script(source, options);
  if (mayPause) setTimeout(() => writeCache(script, file), WRITE_AFTER_MS).unref();
  return script;
}

function writeCache(script, file) {
  if (existsSync(file)) return;
  // V8 compares all flags with those of the process that reads the cache.
  setFlagsFromString(OPTIMIZE);
  setFlagsFromString('--semi-space-growth-factor=1');
  const cache = script.createCachedData();
  setFlagsFromString(OPTIMIZE_LATER);
  const partial = `${file}.${process.pid}`;
  writeFileSync(partial, cache);
  renameSync(partial, file);
}
