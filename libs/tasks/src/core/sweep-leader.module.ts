import { Module } from '@nestjs/common';
import { SweepLeader } from './sweep-leader.js';

/** One leader for all sweeps of a worker. */
@Module({ providers: [SweepLeader], exports: [SweepLeader] })
export class SweepLeaderModule {}
