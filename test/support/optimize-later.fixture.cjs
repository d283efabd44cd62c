// Loaded into an API or a worker of a test with --require: V8 optimizes only what runs long. Such a process ends before the optimized
// code of other functions has saved what it costs: a tenth of the CPU time.
const v8 = require('node:v8');

// Later releases than Node.js 20 do not have the flag: see bundle.mjs, which sets it, too.
if (Number.parseInt(process.versions.v8) < 12) {
  const { setFlagsFromString } = v8;
  v8.setFlagsFromString = (flag) => {
    if (!flag.startsWith('--interrupt-budget=')) setFlagsFromString(flag);
  };
  // With other flags V8 refuses the code cache of the program. The program is loaded before this runs.
  setImmediate(() => setFlagsFromString('--interrupt-budget=1000000'));
}
