import { type Agent, modelProvider } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { IndexModels } from '../../index-models.js';
import { type AgentOutput, type Turn } from '../../agent-runtime.js';
import { llmConfigSchema, modelKey, splitModel } from '../llm/llm-config.js';
import { LlmRuntime } from '../llm/llm-runtime.js';

const PROMPT = `You are the front desk of a server with several agents. You do no work yourself: hand each message to the
agent that fits it best, with everything that agent has to know, because it sees nothing of this conversation. Ask several
agents if the message needs it. Then answer the user with what they have said, without adding facts of your own, and say
which agent it is from. If an agent asks back, pass its question on to the user unless the conversation has the answer.
If no agent fits, say so and name those there are with what they do.`;

/** Routes messages with a model: an llm agent that can call every agent of the tenant. */
@Injectable()
export class IndexRouter {
  constructor(
    private readonly models: IndexModels,
    private readonly llm: LlmRuntime,
  ) {}

  /** The llm agent that routes, or the reason for the caller why there is none. */
  async open({ tenantId, agent, secrets }: Turn): Promise<{ agent: Agent } | { why: string }> {
    const found = await this.models.modelOf(tenantId);
    if (!found) return { why: 'There is no model behind me' };
    const config = { ...found, prompt: PROMPT, agents: 'all' };
    const parsed = llmConfigSchema.safeParse(config);
    if (!parsed.success)
      return { why: `The model that was set for me, "${found.model}", is not one that I know` };
    const { provider } = splitModel(found.model);
    const { name, destination } = modelKey(parsed.data);
    const key = await secrets.get(name, [destination]).catch(secretErrorOf);
    if (key instanceof Error) return { why: `I cannot use my model: ${key.message}` };
    if (modelProvider(provider).isKeyNeeded && key === undefined) {
      return { why: `There is no key for my model: the secret "${provider}" is not set` };
    }
    return { agent: { ...agent, definition: { ...agent.definition, runtime: 'llm', config } } };
  }

  route(turn: Turn, agent: Agent, signal: AbortSignal): AsyncIterable<AgentOutput> {
    return this.llm.run({ ...turn, agent }, signal);
  }
}

/** Returns an error about a secret, whose message is for the tenant. Throws other errors. */
function secretErrorOf(error: unknown): Error {
  if (error instanceof Error && error.name === 'SecretError') return error;
  throw error;
}
