/** The port for the model of the agent `index`. The worker implements it with the settings of the operator and the tenant. */
export abstract class IndexModels {
  /** Undefined if there is no model. `model` is `provider/model`, not yet validated. */
  abstract modelOf(tenantId: string): Promise<IndexModel | undefined>;
}

export interface IndexModel {
  model: string;
  baseUrl?: string;
}
