// Loaded into a process with NODE_OPTIONS=--require, also into its threads: the clock of the machine is off by as many
// milliseconds of the file CLOCK_OFFSET_FILE, and jumps when the file changes. As with a real machine, the
// monotonic clock continues.
const { readFileSync, watchFile } = require('node:fs');

const file = process.env.CLOCK_OFFSET_FILE;
let offsetMs = 0;
function read() {
  offsetMs = Number(readFileSync(file, 'utf8'));
}
read();
watchFile(file, { interval: 50, persistent: false }, read);

const TrueDate = Date;
const now = () => TrueDate.now() + offsetMs;
globalThis.Date = new Proxy(TrueDate, {
  construct: (target, given, newTarget) =>
    Reflect.construct(target, given.length > 0 ? given : [now()], newTarget),
  apply: () => new TrueDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
