import { type AgentRuntime, RuntimeTable } from '@baton/agents';
import { ComputeModule } from '@baton/compute';
import { ConfigModule, loadEnvironment } from '@baton/config';
import { DatabaseModule } from '@baton/database';
import { LimitsModule, SecretsModule } from '@baton/identity';
import { MessagingModule } from '@baton/messaging';
import { TelemetryModule } from '@baton/telemetry';
import { Test, type TestingModule } from '@nestjs/testing';
import { WorkerTasksModule } from '../worker-tasks.module.js';

/**
 * A worker with one slot in this process, not started yet. Nothing extends its leases here: they outlast a test.
 * @param runtime executes every agent
 */
export function compileWorker(
  databaseUrl: string,
  runtime: () => AgentRuntime,
  settings: Record<string, string>,
): Promise<TestingModule> {
  const environment = loadEnvironment({
    DATABASE_URL: databaseUrl,
    LOG_LEVEL: 'silent',
    WORKER_CONCURRENCY: '1',
    LEASE_MS: '60000',
    ...settings,
  });
  return Test.createTestingModule({
    imports: [
      ConfigModule.use(environment),
      TelemetryModule,
      DatabaseModule,
      MessagingModule,
      LimitsModule,
      SecretsModule,
      ComputeModule,
      WorkerTasksModule,
    ],
  })
    .overrideProvider(RuntimeTable)
    .useFactory({ factory: () => ({ get: runtime }) })
    .compile();
}
