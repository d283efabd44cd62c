import { Injectable } from '@nestjs/common';
import { AgentList } from '../../agent-list.js';
import {
  type AgentOutput,
  artifactChunk,
  completed,
  jsonPart,
  plainTextPart,
  type Turn,
  turnNumber,
} from '../../agent-runtime.js';
import { type AgentRuntime } from '../../runtime-table.js';
import { IndexRouter } from './index-router.js';

const introduction = (why: string): string =>
  `I am the index of this server: I answer where no agent is named. ${why}, so I cannot ` +
  'do the work myself, but I can tell you which agents there are. Send your message to one of them:';

/**
 * The tenant's default agent until the operator sets another one. With a model it routes to the tenant's agents. Without
 * a model it lists them, as text and as data `{agents: [{slug, name, description}]}`.
 */
@Injectable()
export class IndexRuntime implements AgentRuntime {
  readonly name = 'index';

  constructor(
    private readonly agents: AgentList,
    private readonly router: IndexRouter,
  ) {}

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const routing = await this.router.open(turn);
    if ('agent' in routing) yield* this.router.route(turn, routing.agent, signal);
    else yield* this.list(turn, introduction(routing.why), signal);
  }

  private async *list(turn: Turn, first: string, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const agents = await this.agents.list(turn.tenantId);
    if (signal.aborted) return;
    const entries = agents.map(({ slug, definition: { name, description } }) => ({
      slug,
      name,
      description,
    }));
    const lines = entries.map(({ slug, name, description }) => `- ${slug} (${name}): ${description}`);
    const parts = [plainTextPart([first, ...lines].join('\n')), jsonPart({ agents: entries })];
    yield artifactChunk(turn, { artifactId: `agents-${turnNumber(turn).toString()}`, name: 'agents', parts });
    yield completed(turn);
  }
}
