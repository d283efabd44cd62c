#!/usr/bin/env node
import 'reflect-metadata';
import { processEnvironment, withCommandLine } from '@baton/config';
import { run } from './program.js';

// `baton watch … | head`: a reader that closes the pipe is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const terminal = {
  out: (text: string) => void process.stdout.write(`${text}\n`),
  err: (text: string) => void process.stderr.write(`${withCommandLine(text)}\n`),
  progress: process.stderr,
};

void run(process.argv.slice(2), { source: processEnvironment(), terminal, stdin: () => process.stdin }).then(
  (code) => {
    process.exitCode = code;
  },
);
