/** With which model the agent `index` routes. Bound to the settings of operator and tenant by the process that runs agents. */
export abstract class IndexModels {
  /** Undefined: it has none. `model` is `provider/model` as somebody has written it. */
  abstract of(tenantId: string): Promise<IndexModel | undefined>;
}

export interface IndexModel {
  model: string;
  baseUrl?: string;
}
