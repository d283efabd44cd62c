// npm run bench:neighbours: how an attack of one tenant delays another tenant's blocking `echo`, and its calls of a remote agent
// whose host has a name. Runs `npm start` once with Redis, if installed, and once on Postgres alone. One tenant calls all the
// time. The other one attacks, each attack for SECONDS (20) from ATTACKERS (4) callers; attacks with sockets and names have
// MANY_ATTACKERS (60). The attacker has the limits that a tenant has by default, or none (LIMITS=none). CALLERS (2) of `echo`,
// WORKERS (2). ATTACKS (beginnings of names) and DRIVERS select some (`ATTACKS=spin,flood DRIVERS=postgres`).
// Before each attack all that earlier ones have left is canceled, and the neighbour is measured without an attack: `before` has its p50 in ms
// and the CPU of the workers, and `times` the p50 of the remote agent in the attack, divided by it.
// The targets on an idle machine, in every attack: p99 of `echo` below one second, p50 of the remote agent at most twice that
// without an attack, and at most 400 MB of memory (RSS) in the API process. The rows `machine` attack nothing: they show what busy
// programs cost that have nothing to do with Baton.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Attacker, GUESTS, GUESTS_OF_ECHO } from './attacks/attacker.mjs';
import { CONTENT_ATTACKS } from './attacks/content.mjs';
import { FLOOD_ATTACKS } from './attacks/floods.mjs';
import { HTTP_ATTACKS } from './attacks/http.mjs';
import { HTTP2_ATTACKS } from './attacks/http2.mjs';
import { MACHINE_LOADS } from './attacks/machine.mjs';
import { MIXED_ATTACKS } from './attacks/mixes.mjs';
import { NAME_ATTACKS } from './attacks/names.mjs';
import { startPeer } from './attacks/peer.mjs';
import { PEER_ATTACKS } from './attacks/peers.mjs';
import { READ_ATTACKS } from './attacks/reads.mjs';
import { RECEIVER_ATTACKS } from './attacks/receivers.mjs';
import { SOCKET_ATTACKS } from './attacks/sockets.mjs';
import { STREAM_ATTACKS } from './attacks/streams.mjs';
import { usageOf } from './counters.mjs';
import { NO_LIMITS } from './limits.mjs';
import { quantile } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { startBaton } from './servers.mjs';

const path = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const names = (name, fallback) => (process.env[name] ? process.env[name].split(',') : fallback);
const SECONDS = numberSetting('SECONDS', 20);
const ATTACKERS = numberSetting('ATTACKERS', 4);
const MANY_ATTACKERS = numberSetting('MANY_ATTACKERS', 60);
const CALLERS = numberSetting('CALLERS', 2);
const WORKERS = numberSetting('WORKERS', 2);
/** How long the neighbour is measured before an attack and after it. */
const REST_MS = 3_000;

const require = createRequire(import.meta.url);
const { findRedisBinary } = require(path('dist/apps/local/src/services/index.js'));
/** Of an agent at a name. No name server answers for any other name. */
const FRIEND = 'friend.example';
/** What each attack sends, again and again. A refusal is an answer as any other. */
const ATTACKS = {
  ...MACHINE_LOADS,
  ...CONTENT_ATTACKS,
  ...NAME_ATTACKS,
  ...SOCKET_ATTACKS,
  ...RECEIVER_ATTACKS,
  ...PEER_ATTACKS,
  ...STREAM_ATTACKS,
  ...HTTP_ATTACKS,
  ...HTTP2_ATTACKS,
  ...READ_ATTACKS,
  ...FLOOD_ATTACKS,
  ...MIXED_ATTACKS,
};

/** Figures of the neighbour during `work`, and the CPU that each process takes, in percent of a core. */
async function neighbour(thread, processes, work) {
  const usage = () => ({ at: performance.now(), cpu: cpuOf(processes()) });
  const before = usage();
  let workerMegabytes = 0;
  const watch = setInterval(
    () => (workerMegabytes = Math.max(workerMegabytes, ...memoryOfWorkers(processes))),
    250,
  );
  thread.postMessage('begin');
  await work();
  const after = usage();
  clearInterval(watch);
  const figures = once(thread, 'message');
  thread.postMessage('end');
  const cpu = {};
  for (const [name, ms] of Object.entries(after.cpu))
    cpu[name] = (100 * (ms - (before.cpu[name] ?? 0))) / (after.at - before.at);
  return { ...(await figures)[0], workerMegabytes, cpu };
}

/** Memory (RSS) of each worker in MiB. */
function memoryOfWorkers(processes) {
  const kilobytes = (pid) =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  try {
    const workers = Object.entries(processes()).filter(([name]) => name.startsWith('worker'));
    return workers.map(([, pid]) => kilobytes(pid) / 1024);
  } catch {
    // One of them has just ended.
    return [];
  }
}

/** CPU time in ms of the processes of Baton, its services, and of this process: attackers, their servers, the neighbour. */
function cpuOf(processes) {
  const { user, system } = process.cpuUsage();
  const cpu = { api: 0, workers: 0, services: 0, bench: (user + system) / 1000 };
  for (const [name, pid] of Object.entries(processes)) {
    const kind = name === 'api' ? name : name.startsWith('worker') ? 'workers' : 'services';
    cpu[kind] += usageOf(pid).cpu;
  }
  return cpu;
}

/** The table, which is printed last. docs/inside/neighbours.md has its ranges. */
const table = [
  '| attack | driver | remote agent by name, p50: before → in it | times | `echo`: p50 / p99 / longest | after it: longest | webhook, p50 | API, MB |',
  '| --- | --- | --- | ---: | --- | ---: | ---: | ---: |',
];

/** @param rows figures before the attack, in it, and after it */
function tabulate(driver, name, { before, during, rest }) {
  const ms = (times, q) => (quantile(times, q) ?? NaN).toFixed(0);
  const { echo, friend, hook, megabytes } = during;
  const [friendBefore, friendDuring] = [before, during].map((figures) => ms(figures.friend.times, 0.5));
  const times = (friendDuring / friendBefore).toFixed(1);
  const echoes = [0.5, 0.99, 1].map((q) => ms(echo.times, q)).join(' / ');
  const failed = [echo, friend, rest.echo, rest.friend].reduce((sum, each) => sum + each.failed, 0);
  table.push(
    `| ${name}${failed > 0 ? ` (${failed} calls failed)` : ''} | ${driver} | ${friendBefore} → ${friendDuring} | ${times} | ${echoes} ` +
      `| ${ms(rest.echo.times, 1)} | ${ms(hook, 0.5)} | ${megabytes.toFixed(0)} |`,
  );
}

/** @param rows figures before the attack, in it, and after it */
function print(driver, name, rows, { answers, sent }) {
  const { before, during, rest } = rows;
  const { echo, friend, hook, megabytes, workerMegabytes, lagMs, awaited, cpu } = during;
  const quantileOf = (times, q) => quantile(times, q) ?? 0;
  const ms = (times, q) => quantileOf(times, q).toFixed(0).padStart(7);
  const got = [...answers].map(([answer, count]) => `${count}x ${answer}`).join(', ');
  const columns = [echo, friend].map(
    ({ times, failed }) =>
      `${String(times.length).padStart(6)}${ms(times, 0.5)}${ms(times, 0.99)}${(times.at(-1) ?? 0).toFixed(0).padStart(7)}${String(failed).padStart(5)}`,
  );
  const times = quantileOf(friend.times, 0.5) / quantileOf(before.friend.times, 0.5);
  const failures = rest.echo.failed + rest.friend.failed;
  const memory = [megabytes, workerMegabytes].map((each) => each.toFixed(0).padStart(5)).join('');
  const used = Object.values(cpu)
    .map((percent) => percent.toFixed(0).padStart(9))
    .join('');
  console.log(
    `${driver.padEnd(9)}${name.padEnd(35)}${ms(before.echo.times, 0.5)}${ms(before.friend.times, 0.5)}${before.cpu.workers.toFixed(0).padStart(6)} |` +
      `${columns.join(' |')}${times.toFixed(1).padStart(6)} |${String(hook.length).padStart(6)}${ms(hook, 0.5)}${ms(hook, 0.99)} |` +
      `${ms(rest.echo.times, 0.5)}${ms(rest.echo.times, 1)}${String(failures).padStart(5)} |${memory}${lagMs.toFixed(0).padStart(5)}${String(awaited).padStart(5)} |${used}  ${got}${sent ? `, ${sent} sent` : ''}`,
  );
  for (const each of [...echo.errors, ...friend.errors, ...rest.echo.errors]) console.log(`  ${each}`);
}

/** What the neighbour and the attacker have: tokens, agents, public hosts, a webhook. */
async function prepareTenants(baton, peer, friendPort) {
  const cli = async (...args) => {
    const env = { ...process.env, BATON_HOME: baton.home };
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [path('bin/baton.cjs'), ...args, '--json'],
      { env },
    );
    return JSON.parse(stdout);
  };
  await cli('tenants', 'create', 'neighbour');
  const scopes = 'agents:call,tasks:read,agents:write,admin';
  const { token } = await cli('tokens', 'create', '--tenant', 'neighbour', '--scopes', scopes);
  // Its calls are measured, not its limit.
  await cli('tenants', 'limits', 'neighbour', '--requests-per-second', 'none');
  const ports = { url: baton.url, grpc: baton.grpcUrl, management: new URL(baton.metricsUrl).origin, baton };
  const neighbour = new Attacker(ports, token, peer);
  await neighbour.putRemote('friend', `http://${FRIEND}:${friendPort}`);
  const webhook = { url: `http://127.0.0.1:${friendPort}/hook`, agents: ['echo'], states: ['completed'] };
  await neighbour.request('POST', '/v1/webhooks', JSON.stringify(webhook));
  const attacker = new Attacker(ports, baton.token, peer, { few: ATTACKERS, many: MANY_ATTACKERS });
  await attacker.putAgent('reader', {});
  for (const [host, agent] of [
    [GUESTS, 'reader'],
    [GUESTS_OF_ECHO, 'echo'],
  ])
    await cli('hosts', 'bind', host, '--tenant', 'demo', '--agent', agent, '--public');
  return { attacker, token };
}

/** The attacks that ATTACKS names: each by the beginning of its name. */
function selected() {
  const wanted = names('ATTACKS', ['']);
  const all = Object.entries(ATTACKS);
  const unknown = wanted.find((each) => !all.some(([name]) => name.startsWith(each)));
  if (unknown !== undefined)
    throw new Error(`There is no attack "${unknown}": ${Object.keys(ATTACKS).join(', ')}`);
  return all.filter(([name]) => wanted.some((each) => name.startsWith(each)));
}

async function measure(driver, peer) {
  const victim = new Worker(new URL('./neighbour-thread.mjs', import.meta.url), {
    workerData: { friend: FRIEND },
  });
  const [{ friendPort, dns }] = await once(victim, 'message');
  const env = {
    OUTBOUND_ALLOW: '127.0.0.1',
    OUTBOUND_DNS: dns,
    BATON_AGENTS_DIR: path('test/agents'),
    // Without a PATH there is no Redis to be found.
    ...(driver === 'postgres' && { PATH: '', REDIS_URL: '' }),
  };
  const limits = process.env.LIMITS === 'none' ? NO_LIMITS : {};
  const baton = await startBaton({ workers: WORKERS, env, limits });
  try {
    const { attacker, token } = await prepareTenants(baton, peer, friendPort);
    victim.postMessage({ url: baton.url, token, metricsUrl: baton.metricsUrl, callers: CALLERS });
    const figuresOf = (work) => neighbour(victim, baton.processes, work);
    const idle = { act: (a) => a.rest() };
    for (const [name, attack] of [['no attack', idle], ...selected()]) {
      await attacker.clear();
      const before = await figuresOf(() => sleep(REST_MS));
      await attacker.prepare(attack);
      const during = await figuresOf(() => attacker.attack(attack, SECONDS));
      const rest = await figuresOf(() => sleep(REST_MS));
      print(driver, name, { before, during, rest }, attacker);
      tabulate(driver, name, { before, during, rest });
    }
  } finally {
    await victim.terminate();
    await baton.stop();
  }
}

const peer = await startPeer();
console.log(
  `${cpus().length} cores, ${SECONDS} s each, ${ATTACKERS} or ${MANY_ATTACKERS} attackers, ${CALLERS} callers, ${WORKERS} workers`,
);
const columns = ' calls p50 ms p99 ms max ms fail';
console.log(
  `${'driver   attack'.padEnd(44)} before friend  work |${columns} |${columns} times | hooks p50 ms p99 ms |  after max ms fail | RSS work  lag wait | CPU % api  workers services    bench  the attacker was answered`,
);
try {
  for (const driver of names('DRIVERS', findRedisBinary() ? ['redis', 'postgres'] : ['postgres'])) {
    await measure(driver, peer);
  }
  console.log(`\n${table.join('\n')}`);
} finally {
  peer.stop();
}
