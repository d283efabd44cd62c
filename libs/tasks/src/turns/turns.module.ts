import { Module } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { TurnEnds } from './turn-ends.js';
import { TurnIntake } from './turn-intake.js';

/** How turns begin and end, and which of their runs are on the queue. */
@Module({
  providers: [RunDispatcher, TurnEnds, TurnIntake],
  exports: [RunDispatcher, TurnEnds, TurnIntake],
})
export class TurnsModule {}
