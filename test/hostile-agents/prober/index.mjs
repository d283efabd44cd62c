import { execFileSync } from 'node:child_process';
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { answer, textOf } from '../answer.mjs';

const MAX_BYTES = 1_000_000;

/** The beginning of a file. Undefined if it cannot be read. */
function contentOf(path) {
  let file;
  try {
    // Not of a pipe: that would take from its reader.
    if (!statSync(path).isFile()) return undefined;
    file = openSync(path, 'r');
    const bytes = Buffer.alloc(MAX_BYTES);
    return bytes.toString('latin1', 0, readSync(file, bytes));
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function namesIn(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** What it finds of other processes: of its ancestors, and of all others that it sees. */
function* ofProcesses(needles) {
  for (const pid of namesIn('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
    const at = join('/proc', pid);
    for (const name of ['environ', 'maps', 'auxv', 'mem']) {
      try {
        closeSync(openSync(join(at, name), 'r'));
      } catch {
        continue;
      }
      // All may open the file. Its content cannot be read.
      if (name === 'mem' || contentOf(join(at, name))) yield `${name} of a process`;
    }
    const texts = [contentOf(join(at, 'cmdline')), contentOf(join(at, 'cwd/.env'))];
    for (const fd of namesIn(join(at, 'fd'))) texts.push(contentOf(join(at, 'fd', fd)));
    if (texts.some((text) => needles.some((needle) => text?.includes(needle)))) yield 'a secret of a process';
  }
}

function* ofFiles(paths) {
  for (const path of paths) {
    if (contentOf(path) !== undefined) yield `reads ${path}`;
    if (namesIn(path).length > 0) yield `lists ${path}`;
  }
  try {
    writeFileSync(join(paths[0], 'planted'), '');
    yield 'writes';
  } catch {}
}

/** Native code has more ways. */
function* ofSystemCalls(native, pid) {
  const koffi = createRequire(import.meta.url)(native);
  const libc = koffi.load(null);
  const ptrace = libc.func('long ptrace(int, int, void *, void *)');
  if (ptrace(16, pid, null, null) === 0) yield 'traces the worker';
  const pidfd = libc.func('int syscall(long, int, int, int)');
  const worker = pidfd(434, pid, 0, 0);
  for (let fd = 0; fd < 30; fd++) if (pidfd(438, worker, fd, 0) >= 0) yield 'takes a file of the worker';
}

async function* ofDebugger(pid) {
  try {
    process.kill(pid, 'SIGUSR1');
  } catch {}
  await sleep(300);
  const isOpen = await new Promise((resolve) => {
    const socket = connect(9229, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
    setTimeout(() => socket.destroy(), 1_000).unref();
  });
  if (isOpen) yield 'debugs the worker';
}

function* ofItself() {
  // Otherwise it finds nothing because it cannot look.
  if (!contentOf('/proc/self/environ')?.includes('PATH=')) yield 'cannot read its own environment';
  for (const fd of namesIn('/proc/self/fd')) {
    try {
      const target = readlinkSync(join('/proc/self/fd', fd));
      if (target.startsWith('/') && !target.startsWith('/dev/') && !target.startsWith('/proc/'))
        yield `has open ${target}`;
    } catch {}
  }
  const rights = /CapEff:\s+(\w+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1];
  if (Number(`0x${rights}`) !== 0) yield 'has rights of root';
}

/** Programs that it starts. */
function* ofChildren(pid) {
  const script = `cat /proc/${pid}/environ`;
  try {
    if (execFileSync('/bin/sh', ['-c', script], { stdio: 'pipe' }).length > 0)
      yield 'its child reads environ';
  } catch {}
}

export default class {
  async execute(context, bus) {
    const { needles, paths, native } = JSON.parse(textOf(context));
    const worker = process.ppid;
    const found = [];
    for (const look of [ofItself(), ofProcesses(needles), ofFiles(paths), ofChildren(worker)])
      found.push(...look);
    if (native) found.push(...ofSystemCalls(native, worker));
    for await (const finding of ofDebugger(worker)) found.push(finding);
    answer(context, bus, JSON.stringify([...new Set(found)]));
  }

  async cancelTask() {}
}
