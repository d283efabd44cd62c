import { assertConfig } from '@baton/agents';
import type { Tenant } from '@baton/database';
import { OperatorError } from './operator-error.js';

/**
 * The model of a tenant's index agent, as an operator names it: `provider/model`, `none`, or `default` for what the
 * environment says. Throws OperatorError that names the option.
 */
export function readIndexModel(model: string, url?: string): Pick<Tenant, 'indexModel' | 'indexModelUrl'> {
  if (model === 'default') return { indexModel: null, indexModelUrl: null };
  if (model === 'none') return { indexModel: 'none', indexModelUrl: null };
  try {
    assertConfig({ runtime: 'llm', config: { model, ...(url !== undefined && { baseUrl: url }) } });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const named = reason
      .replace('config.model:', '--index-model')
      .replace('config.baseUrl:', '--index-model-url');
    throw new OperatorError(`${named}.`);
  }
  return { indexModel: model, indexModelUrl: url ?? null };
}
