import { Global, Module } from '@nestjs/common';
import { LimitsService } from './limits.service.js';

/** Provides LimitsService. */
@Global()
@Module({ providers: [LimitsService], exports: [LimitsService] })
export class LimitsModule {}
