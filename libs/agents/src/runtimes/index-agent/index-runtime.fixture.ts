import type { IndexModel } from '../../index-models.js';
import type { AgentList } from '../../agent-list.js';
import type { LlmRuntime } from '../llm/llm-runtime.js';
import { IndexRuntime } from './index-runtime.js';
import { IndexRouter } from './index-router.js';

/** The index of a tenant with these agents; unless a test says more, it has no model. */
export function indexOf(
  agents: AgentList,
  { model, llm }: { model?: IndexModel; llm?: Pick<LlmRuntime, 'run'> } = {},
): IndexRuntime {
  const models = { modelOf: async () => model };
  return new IndexRuntime(agents, new IndexRouter(models, llm as LlmRuntime));
}
