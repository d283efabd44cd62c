import { Global, Module } from '@nestjs/common';
import { LimitsService } from './limits.service.js';

/** Provides LimitsService, for the API and for workers. Expects the stores and Messaging to be provided globally. */
@Global()
@Module({ providers: [LimitsService], exports: [LimitsService] })
export class LimitsModule {}
