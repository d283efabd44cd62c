#!/usr/bin/env node
import 'reflect-metadata';
import { processEnvironment } from '@baton/config';
import { calledAs, inOwnCall } from './called-as.js';
import { run } from './program.js';

// `baton watch … | head`: a reader that closes the pipe is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const call = calledAs(process.argv[1] ?? '', process.env);

const terminal = {
  out: (text: string) => void process.stdout.write(`${text}\n`),
  err: (text: string) => void process.stderr.write(`${inOwnCall(text, call)}\n`),
  progress: process.stderr,
};

void run(process.argv.slice(2), { source: processEnvironment(), terminal, stdin: () => process.stdin }).then(
  (code) => {
    process.exitCode = code;
  },
);
