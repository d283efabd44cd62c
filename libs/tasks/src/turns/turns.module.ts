import { Module } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { TurnEnds } from './turn-ends.js';
import { TurnAcceptance } from './turn-acceptance.js';

/** How turns begin and end, and which of their runs are on the queue. */
@Module({
  providers: [RunDispatcher, TurnEnds, TurnAcceptance],
  exports: [RunDispatcher, TurnEnds, TurnAcceptance],
})
export class TurnsModule {}
