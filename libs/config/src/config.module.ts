import { type DynamicModule, Global, Module } from '@nestjs/common';
import { Environment, loadEnvironment } from './environment.js';

/** Provides the Environment to every module of a process. */
@Global()
@Module({
  providers: [{ provide: Environment, useFactory: () => loadEnvironment() }],
  exports: [Environment],
})
export class ConfigModule {
  /** With an environment that was loaded before Nest started (so that its errors could be shown plainly). */
  static use(environment: Environment): DynamicModule {
    return { module: ConfigModule, providers: [{ provide: Environment, useValue: environment }] };
  }
}
