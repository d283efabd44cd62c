import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { PATIENT } from '../support/mcp-server/mcp-server.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import type { ApiAddress, Credentials } from './caller.js';
import { DrivenTasks } from './driven-tasks.js';
import type { VersionOutcome, VersionRecord } from './observations.js';
import type { Outside } from './outside.js';
import { answerOf, RETRY_MS, type RestTask, RetryingClient, retriesOf } from './retrying-client.js';

/** A person thinks for so long, while new versions are stored. */
const THINKING_MS = 1_000;
/** Between two changes of an agent. */
const CHANGE_MS = 1_500;
/** A task keeps its version while at most 100 later ones are stored, so an agent gets fewer than that in a run. */
const MAX_CHANGES = 80;
const STEPS = ['mark', 'sign', 'seal'] as const;
const ENDED = new Set(['completed', 'failed', 'canceled', 'rejected']);
const AGENTS = ['editions', 'shares'] as const;

/** One way to change an agent. */
type Change = (agent: string) => Promise<unknown>;

/**
 * Tasks of two agents that pin their tasks, while new versions are stored: of `editions` by writes, of `shares` by the label `next`, which
 * gets a share, is promoted or withdrawn. Each task has three steps, and the second waits for a person. A version has its own edition in
 * its prompt, and the model repeats the edition in each step and at the end. The model lives in this process, the tool server outside.
 */
export class VersionLoad {
  private readonly tasks = new DrivenTasks<VersionRecord>((record, signal) => this.drive(record, signal));
  private readonly stopping = new AbortController();
  private edition = 1;

  private constructor(
    private readonly client: RetryingClient,
    private readonly provider: ModelProvider,
    private readonly outside: Outside,
  ) {
    setMaxListeners(0, this.stopping.signal);
  }

  static async start(
    apis: () => Promise<readonly ApiAddress[]>,
    who: Credentials,
    outside: Outside,
  ): Promise<VersionLoad> {
    const provider = await ModelProvider.start();
    provider.answer(({ body }) => replyTo(body as ChatRequest));
    const load = new VersionLoad(new RetryingClient(apis, who), provider, outside);
    for (const agent of AGENTS) await load.write(agent);
    return load;
  }

  /** Begins so many tasks, and changes their agents, spread over the time. */
  async run(tasks: number, lastsMs: number): Promise<void> {
    if (tasks === 0) return;
    const over = new AbortController();
    const changing = this.change(Math.max(CHANGE_MS, lastsMs / MAX_CHANGES), over.signal);
    await this.tasks.begin(tasks, lastsMs, recordOf);
    over.abort();
    await changing;
  }

  /** What has become of the tasks, at the latest after `ms`. */
  async outcome(ms: number): Promise<VersionOutcome> {
    const over = delay(ms, undefined, { ref: false }).then(() => this.tasks.stop());
    await Promise.race([over, this.tasks.ended()]);
    const { steps } = (await this.outside.counts()).calls;
    const { records } = this.tasks;
    for (const record of records) {
      record.calls = steps
        .filter(({ input }) => input.n === record.number)
        .map(({ tool, input, key }) => ({ step: tool, edition: Number(input.edition), key }));
      if (record.taskId === undefined) continue;
      const task = await this.client.task(record.taskId, this.stopping.signal);
      record.stored = { state: task.state, text: answerOf(task) };
      record.retries = retriesOf(task);
      record.storedEdition = await this.editionOf(record.agent, task);
    }
    return { records, received: steps.length };
  }

  async stop(): Promise<void> {
    this.tasks.stop();
    this.stopping.abort();
    await this.provider.stop();
  }

  /** Sends, approves what waits, and looks until the task has ended. */
  private async drive(record: VersionRecord, signal: AbortSignal): Promise<void> {
    const { number, agent } = record;
    const parts = [{ text: `task ${number}` }];
    const taskId = await this.client.message(agent, { messageId: `version-${number}`, parts }, signal);
    record.taskId = taskId;
    const begun = this.edition;
    for (;;) {
      const { state } = await this.client.task(taskId, signal);
      record.changes = this.edition - begun;
      if (ENDED.has(state)) return void (record.isOver = true);
      if (state === 'input-required') {
        const effects = await this.client.effects(taskId, signal);
        const keysOf = (wanted: string) =>
          effects.filter(({ outcome }) => outcome === wanted).map(({ key }) => String(key));
        record.questions.push({ unknown: keysOf('unknown'), intended: keysOf('intended') });
        await delay(THINKING_MS, undefined, { signal });
        await this.client.approve(agent, taskId, `yes-${number}-${record.questions.length}`, signal);
      }
      await delay(RETRY_MS, undefined, { signal });
    }
  }

  /** Stores new versions in turn until `over` aborts. */
  private async change(everyMs: number, over: AbortSignal): Promise<void> {
    const promote: Change = (agent) => this.next(agent, 'POST', '/promote');
    const withdraw: Change = (agent) => this.next(agent, 'DELETE', '');
    const share: Change = (agent) =>
      this.next(agent, 'PUT', '', { share: 50, agent: this.definition(++this.edition) });
    const changes = [share, promote, share, withdraw];
    for (let n = 0; !over.aborted; n++) {
      await delay(everyMs);
      await this.write('editions');
      await changes[n % changes.length]?.('shares');
    }
  }

  private async write(agent: string): Promise<void> {
    const definition = this.definition(++this.edition);
    const { status, json } = await this.client.send(
      'PUT',
      `/v1/agents/${agent}`,
      definition,
      {},
      this.stopping.signal,
    );
    if (status >= 400) throw new Error(`PUT of ${agent}: ${JSON.stringify(json).slice(0, 300)}`);
  }

  /** 409: it was done already, and the answer was lost. */
  private async next(agent: string, method: string, path: string, body?: object): Promise<void> {
    const whole = `/v1/agents/${agent}/next${path}`;
    const { status, json } = await this.client.send(method, whole, body, {}, this.stopping.signal);
    if (status >= 400 && status !== 409)
      throw new Error(`${method} ${whole}: ${JSON.stringify(json).slice(0, 300)}`);
  }

  private definition(edition: number): object {
    return {
      name: 'Keeper',
      description: 'Keeps its version.',
      runtime: 'llm',
      versions: 'pinned',
      config: {
        model: 'openai-compatible/m',
        baseUrl: this.provider.url,
        prompt: `You are edition ${edition}.`,
        tools: { mcp: [{ ...PATIENT, name: 'desk', url: this.outside.servers.steps, approval: ['sign'] }] },
      },
    };
  }

  /** Of the version that the task ran last, as its runs say. */
  private async editionOf(agent: string, { agent_version: version }: RestTask): Promise<number | undefined> {
    if (version === null) return undefined;
    const stored = await this.client.read(`/v1/agents/${agent}/versions/${version}`, this.stopping.signal);
    return editionIn(JSON.stringify(stored));
  }
}

const recordOf = (number: number): VersionRecord => ({
  number,
  agent: AGENTS[number % AGENTS.length] ?? 'editions',
  calls: [],
  questions: [],
  retries: 0,
  changes: 0,
});

interface ChatRequest {
  messages: { role: string; content: unknown }[];
}

const editionIn = (text: string): number | undefined => {
  const [, edition] = /edition (\d+)/.exec(text) ?? [];
  return edition === undefined ? undefined : Number(edition);
};

/** The model takes one step after the other, and each time repeats the edition of its prompt. */
function replyTo({ messages }: ChatRequest) {
  const edition = editionIn(
    JSON.stringify(messages.filter(({ role }) => role === 'system' || role === 'developer')),
  );
  const step = STEPS[messages.filter(({ role }) => role === 'tool').length];
  if (step === undefined) return { text: `edition ${edition}` };
  const [, n] = /task (\d+)/.exec(JSON.stringify(messages.filter(({ role }) => role === 'user'))) ?? [];
  return { calls: [{ name: `desk_${step}`, input: { n: Number(n), edition } }] };
}
