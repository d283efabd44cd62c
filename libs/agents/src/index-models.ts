/** The model with which the agent `index` routes. The worker binds it to the settings of operator and tenant. */
export abstract class IndexModels {
  /** Undefined if there is no model. `model` is `provider/model`, not yet validated. */
  abstract of(tenantId: string): Promise<IndexModel | undefined>;
}

export interface IndexModel {
  model: string;
  baseUrl?: string;
}
