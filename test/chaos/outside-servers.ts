import http from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { startMcpServer } from '../support/mcp-server/mcp-server.js';
import { startModernServer } from '../support/mcp-server/modern-server.js';
import { says } from '../support/mcp-server/script.js';
import { KEEPS_CONNECTIONS } from '../support/server-options.js';

/** How long a tool and an effect take: long enough that a worker dies in the middle. */
const WORK_MS = 1_000;
const EFFECT_KEY = 'baton/effectKey';

/** A call that has reached a tool. */
export interface OutsideCall {
  tool: string;
  input: Record<string, unknown>;
  /** Its effect key. */
  key: string;
  /** When it came, in ms since the epoch. */
  at: number;
}

/** An effect of a step in code that has reached the outside. */
export interface OutsideEffect {
  /** The message of its task. */
  task: string;
  step: string;
  edition: number;
  key: string;
  at: number;
}

/** The MCP servers, by their protocol. `steps` is another modern one, with the steps of agents whose versions change. */
export const OUTSIDE_SERVERS = ['modern', 'sessions', 'sessionless', 'steps'] as const;
export type OutsideServer = (typeof OUTSIDE_SERVERS)[number];

/** Where the systems are. */
export interface OutsideAddress {
  servers: Record<OutsideServer, string>;
  /** `POST` does an effect, `GET <url>/<key>` answers whether it was done. */
  effects: string;
  /** All that has come, as `OutsideCounts`. */
  counts: string;
}

/** All that has come, oldest first. */
export interface OutsideCounts {
  calls: Record<OutsideServer, OutsideCall[]>;
  effects: OutsideEffect[];
}

type Input = Record<string, unknown>;

/**
 * Tool servers of each generation, and a server for the effects of code. They count what comes, and remember it for ever: nothing strikes
 * them.
 */
export async function serveOutside(): Promise<OutsideAddress> {
  const times: Record<OutsideServer, number[]> = { modern: [], sessions: [], sessionless: [], steps: [] };
  const work = (server: OutsideServer, answer: (input: Input) => string) => async (input: Input) => {
    // Each server pushes a call to its list, and calls this at once.
    times[server].push(Date.now());
    await delay(WORK_MS);
    return says(answer(input));
  };
  const answer = (input: Input): string => `answer ${String(input.n)}`;
  const counted = (server: OutsideServer) => [
    { name: 'once', inputSchema: NUMBER, call: work(server, answer) },
    {
      name: 'again',
      inputSchema: NUMBER,
      annotations: { idempotentHint: true },
      call: work(server, answer),
    },
  ];
  const modern = await startModernServer({
    tools: [
      ...counted('modern'),
      {
        name: 'slow',
        inputSchema: NUMBER,
        call: (input) => {
          const task = modern.newTask({ pollIntervalMs: 300 });
          void work('modern', answer)(input).then((result) => task.complete({ ...result }));
          return task;
        },
      },
    ],
  });
  const sessions = await startMcpServer({ tools: counted('sessions') });
  const sessionless = await startMcpServer({ tools: counted('sessionless'), sessionless: true });
  const steps = await startModernServer({
    tools: ['mark', 'sign', 'seal'].map((name) => ({
      name,
      inputSchema: EDITION,
      call: work('steps', () => 'done'),
    })),
  });
  const effects: OutsideEffect[] = [];
  const countsOf = (): OutsideCounts => {
    const callsOf = (name: OutsideServer, calls: readonly Omit<OutsideCall, 'at'>[]): OutsideCall[] =>
      calls.map(({ tool, input, key }, i) => ({ tool, input, key, at: times[name][i] ?? 0 }));
    const keyed = ({ tool, input, meta }: (typeof modern.calls)[number]) => ({
      tool,
      input,
      key: String(meta[EFFECT_KEY]),
    });
    const older = ({ tool, input, key }: (typeof sessions.calls)[number]) => ({
      tool,
      input,
      key: String(key),
    });
    return {
      calls: {
        modern: callsOf('modern', modern.calls.map(keyed)),
        sessions: callsOf('sessions', sessions.calls.map(older)),
        sessionless: callsOf('sessionless', sessionless.calls.map(older)),
        steps: callsOf('steps', steps.calls.map(keyed)),
      },
      effects,
    };
  };
  const url = await serveEffects(effects, countsOf);
  const servers = {
    modern: modern.url,
    sessions: sessions.url,
    sessionless: sessionless.url,
    steps: steps.url,
  };
  return { servers, effects: `${url}/effects`, counts: `${url}/counts` };
}

const NUMBER = {
  type: 'object' as const,
  properties: { n: { type: 'integer' } },
  required: ['n'],
};
const EDITION = {
  type: 'object',
  properties: { n: { type: 'integer' }, edition: { type: 'integer' } },
  required: ['n', 'edition'],
};

/** @returns its URL */
async function serveEffects(effects: OutsideEffect[], countsOf: () => OutsideCounts): Promise<string> {
  const server = http.createServer(KEEPS_CONNECTIONS, (request, response) => {
    const answer = async (): Promise<void> => {
      if (request.method === 'POST') {
        effects.push({ ...((await readJson(request)) as OutsideEffect), at: Date.now() });
        await delay(WORK_MS);
        response.end();
      } else if (request.url === '/counts') response.end(JSON.stringify(countsOf()));
      else {
        const isDone = effects.some(({ key }) => request.url === `/effects/${key}`);
        response.writeHead(isDone ? 200 : 404).end();
      }
    };
    answer().catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
