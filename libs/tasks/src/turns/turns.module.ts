import { Module } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { EagerStart } from '../eager-start/eager-start.js';
import { TurnEnds } from './turn-ends.js';
import { TurnAcceptance } from './turn-acceptance.js';

/** How turns begin and end, and which of their runs are on the queue. */
@Module({
  providers: [RunDispatcher, EagerStart, TurnEnds, TurnAcceptance],
  exports: [RunDispatcher, EagerStart, TurnEnds, TurnAcceptance],
})
export class TurnsModule {}
