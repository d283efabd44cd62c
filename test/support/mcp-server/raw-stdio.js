// `node raw-stdio.js <quirks as JSON> <file>`: an MCP server over stdio that writes the quirks. It adds a line to the file for
// each call. A quirk of a step: those of raw-answers.js; `lines` (raw text before the answer), `raw` (text in place of the
// answer, in which `$id` becomes the id of the request), `silent`, `stderr`, `exit` (code),
// `signal`. The step `start` comes before any request.
const { appendFileSync } = require('node:fs');
const { createInterface } = require('node:readline');
const { answerTo } = require('./raw-answers.js');

const [quirks = '{}', calls = '/dev/null'] = process.argv.slice(2);
const of = (step) => JSON.parse(quirks)[step] ?? {};

/** @returns whether the server continues */
function misbehave({ stderr, lines, exit, signal, silent }) {
  if (stderr) process.stderr.write(stderr);
  if (lines) process.stdout.write(lines);
  if (exit !== undefined) process.exit(exit);
  if (signal) process.kill(process.pid, signal);
  return !silent && !signal;
}

if (misbehave(of('start'))) {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const request = JSON.parse(line);
    if (request.method === 'tools/call') appendFileSync(calls, `${line}\n`);
    const quirk = of(request.method);
    if (!misbehave(quirk) || request.id === undefined) return;
    if (quirk.raw !== undefined) process.stdout.write(quirk.raw.replaceAll('$id', request.id));
    else process.stdout.write(`${JSON.stringify(answerTo(request, quirk))}\n`);
  });
} else {
  // A program that is no MCP server, and stays.
  process.stdin.resume();
}
