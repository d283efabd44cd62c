import { Environment } from '@baton/config';
import { Global, Module, type OnApplicationShutdown } from '@nestjs/common';
import { AgentStore } from './agent.store.js';
import { CatalogClient } from './catalog-client.js';
import { Database } from './database.js';
import { HostStore } from './host.store.js';
import { RunStore } from './run.store.js';
import { TaskStore } from './task.store.js';
import { TenantStore } from './tenant.store.js';
import { TokenStore } from './token.store.js';

const STORES = [TaskStore, RunStore, TenantStore, TokenStore, AgentStore, HostStore];

/** The stores of a process and their connections, which are closed last, when nobody needs them any more. */
@Global()
@Module({
  providers: [
    {
      provide: Database,
      useFactory: ({ databaseUrl, databasePoolSize }: Environment) =>
        new Database({ url: databaseUrl, poolSize: databasePoolSize }),
      inject: [Environment],
    },
    {
      provide: CatalogClient,
      useFactory: ({ databaseUrl }: Environment) => new CatalogClient(databaseUrl),
      inject: [Environment],
    },
    ...STORES,
  ],
  exports: [Database, ...STORES],
})
export class DatabaseModule implements OnApplicationShutdown {
  constructor(
    private readonly database: Database,
    private readonly catalog: CatalogClient,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.database.close(), this.catalog.close()]);
  }
}
