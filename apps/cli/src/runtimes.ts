import { AgentList, AgentsModule, RuntimeTable } from '@baton/agents';
import { ConfigModule, type Environment } from '@baton/config';
import { TelemetryModule } from '@baton/telemetry';
import { type DynamicModule, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

/** Nothing is run here, so no runtime needs to see the catalog. */
class EmptyList extends AgentList {
  override list(): Promise<[]> {
    return Promise.resolve([]);
  }
}

@Module({ providers: [{ provide: AgentList, useClass: EmptyList }], exports: [AgentList] })
class EmptyCatalog {}

@Module({})
class RuntimesModule {
  static with(environment: Environment): DynamicModule {
    return {
      module: RuntimesModule,
      imports: [ConfigModule.use(environment), TelemetryModule, AgentsModule.withPorts(EmptyCatalog)],
    };
  }
}

/** Do `work` with every runtime of the platform, to check an agent's settings as a worker would. */
export async function withRuntimes<T>(
  environment: Environment,
  work: (runtimes: RuntimeTable) => T,
): Promise<T> {
  const context = await NestFactory.createApplicationContext(RuntimesModule.with(environment), {
    logger: false,
    abortOnError: false,
  });
  try {
    return work(context.get(RuntimeTable, { strict: false }));
  } finally {
    await context.close();
  }
}
