import type { Fault } from './faults.js';
import { MANNERS } from './hostile-peer.js';

const ALL = ['redis', 'postgres', 'cluster'] as const;
const MIB = 2 ** 20;

/**
 * Faults of content: what one tenant sends, or has its agents and peers say. No other tenant may notice, so they excuse
 * nothing that a caller could see.
 */
export const ATTACKS = {
  'huge-turn': {
    drivers: ALL,
    excuses: [],
    strike: async ({ attacker }, random) => {
      const flood = { chunks: random.integer(32, 64), bytes: MIB };
      return {
        detail: `${flood.chunks} MiB in one turn: ${await attacker.send(random, 'flood', { flood })}`,
      };
    },
  },
  'frozen-loop': {
    drivers: ALL,
    excuses: [],
    strike: async ({ attacker }, random) => ({
      detail: `an endless loop: ${await attacker.send(random, 'frozen')}`,
    }),
  },
  'hostile-schema': {
    drivers: ALL,
    excuses: [],
    strike: async ({ attacker }, random) => ({ detail: await attacker.offerSchema(random) }),
  },
  'hostile-model': {
    drivers: ALL,
    excuses: [],
    strike: async ({ attacker }, random) => {
      const agent = `${random.pick(MANNERS)}-model`;
      return { detail: `${agent}: ${await attacker.send(random, agent)}` };
    },
  },
  'hostile-tools': {
    drivers: ALL,
    excuses: [],
    strike: async ({ attacker }, random) => {
      const agent = `${random.pick(MANNERS)}-tools`;
      return { detail: `${agent}: ${await attacker.send(random, agent)}` };
    },
  },
  'hostile-agent': {
    drivers: ALL,
    excuses: [],
    strike: async ({ attacker }, random) => {
      const agent = `${random.pick(MANNERS)}-agent`;
      return { detail: `${agent}: ${await attacker.send(random, agent)}` };
    },
  },
  'hostile-request': {
    drivers: ALL,
    excuses: [],
    strike: async ({ attacker }, random) => {
      const [name, body] = random.pick([
        ['a deep body', '['.repeat(8 * MIB)],
        ['a body of many values', `[${'0,'.repeat(2 * MIB)}0]`],
        ['a body of many names', `{${Array.from({ length: 100_000 }, () => `"${random.hex(8)}":0`).join()}}`],
      ] as const);
      const { status } = await attacker.post(random, '/agents/echo', body);
      return { detail: `${name}: ${status}` };
    },
  },
} as const satisfies Record<string, Fault>;
