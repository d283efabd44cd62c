import { InstalledCode } from '../../installed-code.js';
import { type TaskState, USAGE, eventKindOf } from '@baton/a2a';
import { ComputePool } from '@baton/compute';
import { createLogger, Logger, Metrics } from '@baton/telemetry';
import { ModelProvider } from '../../../../../test/support/model-provider/model-provider.js';
import { Outbound } from '@baton/outbound';
import type { AgentOutput, Turn } from '../../agent-runtime.js';
import type { GuardedTurn } from '../../secret-guard.js';
import { TokenBudget, type TokenCount } from '../../token-budget.js';
import { TokensExceeded } from '../../tokens-exceeded.js';
import { agent, collect, firstTurn, textOf, turnSecrets } from '../../../../../test/support/agents/turns.js';
import { LlmRuntime } from './llm-runtime.js';
import { ModelCalls } from './model-calls.js';
import { type AgentTool, type ToolSource, ToolSources } from './tools/tool-sources.js';

// Real connections, perhaps on a machine that has much else to do.
export const KEY = 'sk-test-4711';

/** A tenant's tokens, kept here. */
class CountedTokens extends TokenBudget {
  readonly reserved: number[] = [];
  readonly spent: TokenCount[] = [];
  isFull = false;

  override reserve(_: string, __: string, { inputTokens, outputTokens }: TokenCount): Promise<undefined> {
    this.reserved.push(inputTokens + outputTokens);
    return this.isFull
      ? Promise.reject(new TokensExceeded('no room in tokensPerDay'))
      : Promise.resolve(undefined);
  }

  override allow(): Promise<void> {
    return Promise.resolve();
  }

  override record(_: string, __: string, spent: TokenCount): Promise<void> {
    this.spent.push(spent);
    return Promise.resolve();
  }
}

/** The llm runtime beside a scripted provider. */
export class LlmBench {
  readonly metrics = new Metrics();
  readonly tokens = new CountedTokens();
  readonly tools: AgentTool[] = [];
  /** Lines of the operator's log. */
  readonly logged: string[] = [];
  /** Generous: what it checks is quick, on whatever machine. */
  readonly pool = new ComputePool({ threads: 2, timeoutMs: 30_000 });
  private readonly outbound = new Outbound({ outboundAllow: ['127.0.0.1'] }, this.metrics);
  readonly runtime: LlmRuntime;
  readonly models: ModelCalls;

  private constructor(readonly provider: ModelProvider) {
    const source = { open: () => Promise.resolve({ tools: this.tools, close: () => Promise.resolve() }) };
    const write = (line: string): void => void this.logged.push(line);
    const logger = createLogger({ logLevel: 'info' }, 'worker', { write });
    this.models = new ModelCalls(this.tokens, this.metrics, logger);
    this.models.firstPauseMs = 20;
    this.runtime = new LlmRuntime(
      this.models,
      new ToolSources([source]),
      this.metrics,
      logger,
      this.pool,
      new InstalledCode(),
    );
  }

  static async start(): Promise<LlmBench> {
    return new LlmBench(await ModelProvider.start({ key: KEY }));
  }

  /** The same worker with the tools of another source. */
  runtimeWith(source: ToolSource): LlmRuntime {
    const sources = new ToolSources([source]);
    const { models, metrics, pool } = this;
    return new LlmRuntime(models, sources, metrics, Logger.silent(), pool, new InstalledCode());
  }

  reset(): void {
    this.provider.reset();
    this.tools.length = 0;
    this.logged.length = 0;
    this.tokens.isFull = false;
    this.tokens.reserved.length = 0;
    this.tokens.spent.length = 0;
  }

  async stop(): Promise<void> {
    await this.pool.close();
    await this.outbound.onApplicationShutdown();
    await this.provider.stop();
  }

  /** A first turn of an agent with these settings. */
  turn(
    config: Record<string, unknown> = {},
    fields: Partial<GuardedTurn> = {},
    message: Turn['message'] | string = 'hi',
  ): GuardedTurn {
    const { url, origin } = this.provider;
    const model = typeof config.model === 'string' ? config.model : 'openai/gpt-5-mini';
    const baseUrl = model.startsWith('google/') ? `${origin}/v1beta` : url;
    const tested = agent('helper', 'llm');
    tested.definition.config = { model, baseUrl, ...config };
    const secrets = turnSecrets({ openai: KEY, anthropic: KEY, google: KEY, mine: KEY });
    return firstTurn(message, { agent: tested, secrets, outbound: this.outbound, ...fields });
  }

  run(turn: Turn, signal = new AbortController().signal): Promise<AgentOutput[]> {
    return collect(this.runtime.run(turn, signal));
  }

  say(
    config: Record<string, unknown> = {},
    message: Turn['message'] | string = 'hi',
  ): Promise<AgentOutput[]> {
    return this.run(this.turn(config, {}, message));
  }
}

/** A tool that answers what a function makes of its input. */
export const toolOf = (
  name: string,
  answer: (input: never) => unknown,
  fields: Partial<AgentTool> = {},
): AgentTool => ({
  name,
  description: `The ${name}`,
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  needsApproval: false,
  repeat: 'again',
  execute: async (input) => ({ ok: true, content: await answer(input as never) }),
  ...fields,
});

/** What a caller has at the end: the artifacts as they were left, the last status and its text. */
export function summaryOf(outputs: readonly AgentOutput[]) {
  const artifacts = new Map<
    string,
    { kind: string | undefined; text: string; data?: unknown; closed: boolean }
  >();
  let status: { state: TaskState; text?: string } | undefined;
  let usage: unknown;
  for (const { $case, value } of outputs) {
    if ($case === 'statusUpdate') {
      const { state, message } = value.status!;
      status = { state, ...(message && { text: textOf(message.parts) }) };
      usage = value.metadata?.[USAGE] ?? usage;
    }
    if ($case !== 'artifactUpdate') continue;
    const { artifactId, parts } = value.artifact!;
    const before = value.append ? (artifacts.get(artifactId)?.text ?? '') : '';
    const data = parts.find(({ content }) => content?.$case === 'data')?.content?.value;
    artifacts.set(artifactId, {
      kind: eventKindOf(value.artifact!),
      text: before + textOf(parts),
      ...(data !== undefined && { data }),
      closed: value.lastChunk,
    });
  }
  return { artifacts: Object.fromEntries(artifacts), status, usage };
}

/** An artifact of the reply that was said to its end. */
export const reply = (text: string) => ({ kind: undefined, text, closed: true });
