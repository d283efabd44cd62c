import { type DynamicModule, Module, type Type } from '@nestjs/common';
import type { AgentRuntime } from './runtime.js';
import { RUNTIMES, RuntimeTable } from './runtimes.js';

/** Provides the RuntimeTable with every runtime in it. */
@Module({})
export class AgentsModule {
  /** @param catalog a module that exports a provider of `AgentList` */
  static withCatalog(catalog: Type): DynamicModule {
    return {
      module: AgentsModule,
      imports: [catalog],
      providers: [
        ...RUNTIMES,
        {
          provide: RuntimeTable,
          useFactory: (...runtimes: AgentRuntime[]) => new RuntimeTable(runtimes),
          inject: [...RUNTIMES],
        },
      ],
      exports: [RuntimeTable],
    };
  }
}
