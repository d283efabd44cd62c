import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Credentials } from './caller.js';
import type { Cluster } from './cluster.js';
import { HostilePeer, MANNERS } from './hostile-peer.js';
import type { AttackTask } from './observations.js';
import { Random } from './random.js';
import type { Services } from './services.js';

/** Longest wait for an answer. The answers of attackers are not judged, so a missing one is no finding. */
const ANSWER_MS = 30_000;
const LOOK_MS = 1000;
/** How long an attack may take before its sender cancels it. */
const ATTACK_MS = 20_000;
/** Each step doubles the work of a check of a value against it. */
const DOUBLINGS = 26;

const ended = new Set(['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED'].map((state) => `TASK_STATE_${state}`));

/** What came back; the body as far as it is of use in a report. */
export interface Told {
  status: number;
  body: string;
}

/** A tenant that means ill: it sends what it may send, from agents and peers of its own, beside all the others. */
export class Attacker {
  /** Every task whose id it has got. */
  private readonly tasks = new Map<string, string>();

  private constructor(
    private readonly cluster: Cluster,
    private readonly who: Credentials,
    private readonly peer: HostilePeer,
  ) {}

  /** With agents that speak to hostile peers, and one whose schema is too expensive to check. */
  static async start(cluster: Cluster, who: Credentials): Promise<Attacker> {
    const attacker = new Attacker(cluster, who, await HostilePeer.start());
    const { peer } = attacker;
    const model = 'openai-compatible/m';
    for (const manner of MANNERS) {
      const baseUrl = peer.url(manner, 'model');
      await attacker.create(`${manner}-model`, 'llm', { model, baseUrl });
      const tools = { mcp: [{ name: 'desk', url: peer.url(manner, 'tools') }] };
      await attacker.create(`${manner}-tools`, 'llm', { model, baseUrl: peer.url('seven', 'model'), tools });
      await attacker.create(`${manner}-agent`, 'remote-a2a', { card: peer.url(manner, 'card') });
    }
    return attacker;
  }

  /** Send to an agent, look at the task until it ends, and cancel it if that takes too long. @returns its state */
  async send(random: Random, agent: string, metadata: object = {}): Promise<string> {
    const parts = [{ text: this.who.mark }];
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts, metadata };
    const configuration = { returnImmediately: true };
    const params = { message, configuration };
    const { result, error } = await this.call(random, agent, 'SendMessage', params);
    const id = result?.task?.id;
    if (id === undefined) return error ?? 'no answer';
    this.tasks.set(id, agent);
    const until = performance.now() + ATTACK_MS;
    while (performance.now() < until) {
      const seen = await this.call(random, agent, 'GetTask', { id });
      const state = seen.result?.status?.state;
      if (state !== undefined && ended.has(state)) return state.slice('TASK_STATE_'.length).toLowerCase();
      await delay(LOOK_MS);
    }
    const canceled = await this.call(random, agent, 'CancelTask', { id });
    return canceled.error === undefined ? 'canceled' : `not canceled: ${canceled.error}`;
  }

  /** Offer an agent with a schema that is checked in exponential time, and use it if it is taken. */
  async offerSchema(random: Random): Promise<string> {
    const slug = `schema-${random.hex(6)}`;
    const config = {
      model: 'openai-compatible/m',
      baseUrl: this.peer.url('seven', 'model'),
      output: { schema: doublingSchema() },
    };
    const dry = await this.create(slug, 'llm', config, '?dryRun=true', random);
    const made = await this.create(slug, 'llm', config, '', random);
    const answer = `dry run ${dry.status}, written ${made.status}`;
    return made.status < 300 ? `${answer}, ${await this.send(random, slug)}` : answer;
  }

  /** A request of the tenant's, of any API. Never rejects. */
  async post(random: Random, path: string, body: string): Promise<Told> {
    const api = random.pick(await this.cluster.someApis());
    const headers = {
      authorization: `Bearer ${this.who.token}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
    };
    const signal = AbortSignal.timeout(ANSWER_MS);
    try {
      const response = await fetch(`${api.url}${path}`, { method: 'POST', headers, body, signal });
      return { status: response.status, body: await response.text() };
    } catch (error) {
      return { status: 0, body: error instanceof Error ? error.message : String(error) };
    }
  }

  /** How its tasks have ended, once they have, or `ms` are over: what it sends must end as well. */
  async outcome(services: Services, ms: number): Promise<AttackTask[]> {
    const until = performance.now() + ms;
    for (;;) {
      const rows = await services.query<{ id: string; active: boolean }>(
        `SELECT t.id, t.active_run_id IS NOT NULL AS active FROM tasks t JOIN tenants n ON n.id = t.tenant_id
         WHERE n.slug = $1`,
        [this.who.tenant],
      );
      const isOver = rows.every(({ active }) => !active);
      if (isOver || performance.now() > until) {
        return rows.map(({ id, active }) => ({ id, agent: this.tasks.get(id) ?? '?', ended: !active }));
      }
      await delay(LOOK_MS);
    }
  }

  stop(): Promise<void> {
    return this.peer.stop();
  }

  private async create(
    slug: string,
    runtime: string,
    config: object,
    query = '',
    random = new Random(slug),
  ): Promise<Told> {
    return this.post(
      random,
      `/v1/agents${query}`,
      JSON.stringify({ slug, name: slug, description: slug, runtime, config }),
    );
  }

  private async call(random: Random, agent: string, method: string, params: object) {
    const answer = await this.post(
      random,
      `/agents/${agent}`,
      JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    );
    try {
      const { result, error } = JSON.parse(answer.body) as {
        result?: { task?: { id: string }; status?: { state: string } };
        error?: { message: string };
      };
      return { result, error: error?.message };
    } catch {
      return { result: undefined, error: `${answer.status} ${answer.body.slice(0, 80)}` };
    }
  }
}

/** Less than a hundred bytes a step, and twice the work of the step before. */
function doublingSchema(): object {
  const $defs: Record<string, object> = { d0: { type: 'integer' } };
  for (let n = 1; n <= DOUBLINGS; n++) {
    const before = { $ref: `#/$defs/d${n - 1}` };
    $defs[`d${n}`] = { allOf: [{ not: { not: before } }, before] };
  }
  return { type: 'object', properties: { value: { $ref: `#/$defs/d${DOUBLINGS}` } }, $defs };
}
