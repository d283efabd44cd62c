// What a system has used so far, as Postgres, Redis and the kernel count it: transactions, commands, log of writes, CPU, memory.
import { Redis } from 'ioredis';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** An idle connection of Postgres reports what it has counted after ten seconds at the latest. */
const REPORTED_MS = 10_500;
const TICK_MS = 10;
const PAGE = 4096;
export const TRANSACTIONS = 'SELECT sum(xact_commit + xact_rollback)::float AS count FROM pg_stat_database';
const WAL = `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float AS bytes`;

export class Counters {
  #client;
  #redis;

  /** @param side one of servers.mjs. Counts nothing for a service that it does not have. */
  static async of(side) {
    const counters = new Counters();
    counters.side = side;
    if (side.databaseUrl) {
      counters.#client = new pg.Client(side.databaseUrl);
      await counters.#client.connect();
    }
    if (side.redisUrl) counters.#redis = new Redis(side.redisUrl);
    return counters;
  }

  /** The counts once all that has happened is in them. */
  async read() {
    const at = performance.now();
    const cpu = {};
    const memory = {};
    for (const [name, pid] of Object.entries(this.side.processes()))
      ({ cpu: cpu[name], memory: memory[name] } = usageOf(pid));
    await sleep(REPORTED_MS);
    const counts = { at, cpu, memory, transactions: 0, wal: 0, commands: {} };
    if (this.#client) {
      // The reader's own transactions are two of each reading.
      const {
        rows: [{ count }],
      } = await this.#client.query(TRANSACTIONS);
      const {
        rows: [{ bytes }],
      } = await this.#client.query(WAL);
      Object.assign(counts, { transactions: count, wal: bytes });
    }
    if (this.#redis) counts.commands = await this.#calls();
    return counts;
  }

  async close() {
    this.#redis?.disconnect();
    await this.#client?.end();
  }

  /** Calls of each Redis command, those of scripts included. */
  async #calls() {
    const text = await this.#redis.info('commandstats');
    const calls = [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)];
    return Object.fromEntries(
      calls.filter(([, name]) => name !== 'info').map(([, name, count]) => [name, Number(count)]),
    );
  }
}

/** What happened between two readings, for each of `count` tasks (or seconds). */
export function perUnit(before, after, count) {
  const each = (from, to) => (to - from) / count;
  const commands = Object.entries(after.commands).map(([name, calls]) => [
    name,
    each(before.commands[name] ?? 0, calls),
  ]);
  const cpu = Object.entries(after.cpu).map(([name, ms]) => [name, each(before.cpu[name], ms)]);
  return {
    transactions: each(before.transactions + (after.transactions > 0 ? 2 : 0), after.transactions),
    wal: each(before.wal, after.wal),
    commands: commands.reduce((sum, [, calls]) => sum + calls, 0),
    commandsByName: commands.filter(([, calls]) => calls >= 0.05).sort((a, b) => b[1] - a[1]),
    cpu: Object.fromEntries(cpu),
  };
}

/** CPU time in ms, and resident memory in MB, of a process and its children; on Linux only. */
export function usageOf(pid) {
  const usage = { cpu: 0, memory: 0 };
  if (process.platform !== 'linux') return usage;
  for (const each of familyOf(pid)) {
    try {
      const fields = statOf(each);
      // Its own, and that of children that have ended: Postgres ends idle connections.
      const [user, system, ofEndedUser, ofEndedSystem] = fields.slice(11, 15).map(Number);
      usage.cpu += (user + system + ofEndedUser + ofEndedSystem) * TICK_MS;
      usage.memory += (Number(readFileSync(`/proc/${each}/statm`, 'utf8').split(' ')[1]) * PAGE) / 1024 ** 2;
    } catch {
      // It has ended.
    }
  }
  return usage;
}

/** The same of all processes of a side, those of its stores included. */
export function usedBy(side) {
  const all = Object.values(side.processes()).map(usageOf);
  const sum = (key) => all.reduce((total, each) => total + each[key], 0);
  return { cpu: sum('cpu'), memory: sum('memory') };
}

function familyOf(root) {
  const parents = new Map();
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      parents.set(Number(name), Number(statOf(name)[1]));
    } catch {
      // It has ended.
    }
  }
  const family = [root];
  for (const member of family) for (const [pid, parent] of parents) if (parent === member) family.push(pid);
  return family;
}

/** The fields of a process from the third on. The name in the second may hold spaces. */
const statOf = (pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
