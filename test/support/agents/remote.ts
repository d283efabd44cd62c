import { RemoteAgent, type RemoteAgentOptions } from '../remote-agent/remote-agent.js';
import type { Disk } from '../remote-agent/surviving-tasks.js';
import { Logger, Metrics } from '@baton/telemetry';
import { type EgressLists, Outbound } from '@baton/outbound';
import type { AgentOutput, Turn } from '../../../libs/agents/src/agent-runtime.js';
import { RemoteA2aRuntime } from '../../../libs/agents/src/runtimes/remote-a2a/remote-a2a-runtime.js';
import { RemoteConnector } from '../../../libs/agents/src/runtimes/remote-a2a/remote-connector.js';
import type { GuardedTurn } from '../../../libs/agents/src/secret-guard.js';
import { agent, collect, summary, turnSecrets, turnWith, userMessage } from './turns.js';

/** Remote agents of one test file, and the runtime that calls them. */
export class Elsewhere {
  readonly started: RemoteAgent[] = [];
  /** Where the tenant may call. */
  lists: EgressLists = { allow: [], deny: [] };
  private readonly outbound: Outbound;

  constructor(allow = ['127.0.0.1']) {
    this.outbound = new Outbound({ outboundAllow: allow });
  }

  async start(options: Partial<RemoteAgentOptions> = {}): Promise<RemoteAgent> {
    const remote = await RemoteAgent.start({ version: '1.0', ...options });
    this.started.push(remote);
    return remote;
  }

  async restart(remote: RemoteAgent, options?: { disk: Disk }): Promise<RemoteAgent> {
    const next = await remote.restart(options);
    this.started.push(next);
    return next;
  }

  async killAll(): Promise<void> {
    await Promise.all(this.started.splice(0).map((remote) => remote.kill()));
  }

  async close(): Promise<void> {
    await this.killAll();
    await this.outbound.onApplicationShutdown();
  }

  /** A runtime with a cache of its own. */
  runtime(): RemoteA2aRuntime {
    return new RemoteA2aRuntime(new RemoteConnector(), Logger.silent(), new Metrics());
  }

  /** The outputs of the runtime in a turn. */
  say(
    turn: Turn,
    signal = new AbortController().signal,
    runtime = this.runtime(),
  ): AsyncIterable<AgentOutput> {
    return runtime.run(this.outside(turn), signal);
  }

  /** The turn with its way to the outside. */
  outside<T extends Turn>(turn: T): T {
    const outbound = this.outbound.forTenant(turn.tenantId, () => Promise.resolve(this.lists));
    return { ...turn, outbound };
  }

  run(turn: Turn, runtime?: RemoteA2aRuntime): Promise<AgentOutput[]> {
    return collect(this.say(turn, undefined, runtime));
  }
}

/** A turn of an agent whose card is at `card`. The tenant has one secret, `key`. */
export function turnAt(
  card: string,
  text: string,
  config: object = {},
  fields: Partial<GuardedTurn> = {},
): GuardedTurn {
  const made = agent('far', 'remote-a2a');
  const definition = { ...made.definition, config: { card, reconnect: '3s', ...config } };
  const secrets = turnSecrets({ key: 'sesame' });
  return turnWith([userMessage(text)], { agent: { ...made, definition }, secrets, ...fields });
}

/** The text of the artifact after all events are applied. */
export function answerIn(outputs: AgentOutput[]): string {
  let parts: string[] = [];
  for (const output of outputs) {
    if (output.$case !== 'artifactUpdate') continue;
    const said = (output.value.artifact?.parts ?? []).map(({ content }) => String(content?.value));
    parts = output.value.append ? [...parts, ...said] : said;
  }
  return parts.join('');
}

/** The last output, as its caller gets it. */
export const endOf = (outputs: AgentOutput[]): unknown => summary(outputs).at(-1);

/** The answer to `count n`. */
export const counted = (n: number): string => Array.from({ length: n }, (_, i) => `${i + 1} `).join('');
