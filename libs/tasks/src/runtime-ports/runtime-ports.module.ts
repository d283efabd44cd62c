import { AccessTokens, AgentList, ChildTasks, IndexModels, SecretReader, TokenBudget } from '@baton/agents';
import { Module } from '@nestjs/common';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { AgentDirectoryModule } from '../catalog/agent-directory.module.js';
import { DelegatedTasks } from '../delegation/delegated-tasks.js';
import { TurnsModule } from '../turns/turns.module.js';
import { TenantTokenBudget } from './tenant-token-budget.js';
import { TenantIndexModels } from './tenant-index-models.js';
import { TenantAccessTokens } from './tenant-access-tokens.js';
import { TenantSecretReader } from './tenant-secret-reader.js';

/** The services of the platform that runtimes can use. */
@Module({
  imports: [AgentDirectoryModule, TurnsModule],
  providers: [
    { provide: AgentList, useExisting: AgentDirectory },
    { provide: SecretReader, useClass: TenantSecretReader },
    { provide: AccessTokens, useClass: TenantAccessTokens },
    { provide: TokenBudget, useClass: TenantTokenBudget },
    { provide: ChildTasks, useClass: DelegatedTasks },
    { provide: IndexModels, useClass: TenantIndexModels },
  ],
  exports: [AccessTokens, AgentList, SecretReader, TokenBudget, ChildTasks, IndexModels],
})
export class RuntimePortsModule {}
