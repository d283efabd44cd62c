import { TaskState } from '@baton/a2a';
import { type AgentRuntime, RuntimeTable } from '@baton/agents';
import { ComputeModule } from '@baton/compute';
import { ConfigModule, loadEnvironment } from '@baton/config';
import { DatabaseModule, type NewTask, TaskStore } from '@baton/database';
import { LimitsModule, SecretsModule } from '@baton/identity';
import { MessagingModule, type RunJob } from '@baton/messaging';
import { TelemetryModule } from '@baton/telemetry';
import type { INestApplicationContext } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { randomUUID } from 'node:crypto';
import { userMessage } from '../../../../test/support/agents/turns.js';
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
      TelemetryModule.named('worker'),
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

/** A task of "echo" whose run is on no queue yet. @param claimFor the worker for which the run is claimed as it is made */
export async function createRun(
  worker: INestApplicationContext,
  tenantId: string,
  claimFor?: NewTask['claimFor'],
): Promise<RunJob> {
  const [taskId, runId] = [randomUUID(), randomUUID()];
  const message = userMessage('hi', { messageId: randomUUID(), contextId: 'c', taskId });
  const status = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: undefined };
  await worker.get(TaskStore, { strict: false }).create({
    tenantId,
    agentId: 'echo',
    runId,
    extensions: [],
    task: { id: taskId, contextId: 'c', artifacts: [], history: [message], metadata: undefined, status },
    claimFor,
  });
  return { tenantId, taskId, runId, attempt: 0 };
}
