import { Injectable } from '@nestjs/common';
import { AgentList } from '../../agent-list.js';
import { artifactChunk, completed, dataPart, textPart } from '../../reply.js';
import type { AgentOutput, AgentRuntime, Turn } from '../../runtime.js';
import { turnNumber } from '../../turn.js';

const INTRODUCTION =
  'I am the index of this server: I answer where no agent is named. There is no model behind me, so I can ' +
  'not do the work myself, but I can tell you which agents there are. Send your message to one of them:';

/**
 * The tenant's default agent until the operator sets another: says what it is and lists the tenant's agents,
 * as text and as data `{agents: [{slug, name, description}]}`.
 */
@Injectable()
export class IndexRuntime implements AgentRuntime {
  readonly name = 'index';

  constructor(private readonly agents: AgentList) {}

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const agents = await this.agents.list(turn.tenantId);
    if (signal.aborted) return;
    const entries = agents.map(({ slug, definition: { name, description } }) => ({
      slug,
      name,
      description,
    }));
    const lines = entries.map(({ slug, name, description }) => `- ${slug} (${name}): ${description}`);
    const parts = [textPart([INTRODUCTION, ...lines].join('\n')), dataPart({ agents: entries })];
    yield artifactChunk(turn, { artifactId: `agents-${turnNumber(turn).toString()}`, name: 'agents', parts });
    yield completed(turn);
  }
}
