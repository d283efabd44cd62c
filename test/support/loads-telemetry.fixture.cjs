// Loaded into a process of a test with NODE_OPTIONS=--require: notes its program in LOADS_FILE when the SDK of
// OpenTelemetry is loaded. Its API, which does nothing without one, is a part of prom-client.
const { appendFileSync } = require('node:fs');
const Module = require('node:module');

const load = Module._load;
Module._load = function noted(request, ...rest) {
  if (/^@opentelemetry\/(?!api$)/.test(request))
    appendFileSync(process.env.LOADS_FILE, `${process.argv[1]}\n`);
  return load.call(this, request, ...rest);
};
