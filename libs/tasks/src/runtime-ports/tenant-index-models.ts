import { type IndexModel, IndexModels } from '@baton/agents';
import { Environment } from '@baton/config';
import { TenantStore } from '@baton/database';
import { Injectable } from '@nestjs/common';

/** The model that answers as the agent `index`: the tenant's own, or the one of the environment. */
@Injectable()
export class TenantIndexModels extends IndexModels {
  constructor(
    private readonly tenants: TenantStore,
    private readonly environment: Environment,
  ) {
    super();
  }

  override async modelOf(tenantId: string): Promise<IndexModel | undefined> {
    const tenant = await this.tenants.byId(tenantId);
    const { indexModel, indexModelUrl } = this.environment;
    const own = tenant?.indexModel ?? null;
    const model = own ?? indexModel;
    const url = own === null ? indexModelUrl : tenant?.indexModelUrl;
    if (model === undefined || model === 'none') return undefined;
    return { model, ...(url && { baseUrl: url }) };
  }
}
