import type { AgentList, IndexModel } from '../../ports.js';
import type { LlmRuntime } from '../llm/llm-runtime.js';
import { IndexRouter, IndexRuntime } from './index-runtime.js';

/** The index of a tenant with these agents; unless a test says more, it has no model. */
export function indexOf(
  agents: AgentList,
  { model, llm }: { model?: IndexModel; llm?: Pick<LlmRuntime, 'run'> } = {},
): IndexRuntime {
  const models = { of: async () => model };
  return new IndexRuntime(agents, new IndexRouter(models, llm as LlmRuntime));
}
