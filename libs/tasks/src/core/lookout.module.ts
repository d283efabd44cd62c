import { Module } from '@nestjs/common';
import { Lookout } from './lookout.js';

/** One lookout for all sweeps of a worker. */
@Module({ providers: [Lookout], exports: [Lookout] })
export class LookoutModule {}
