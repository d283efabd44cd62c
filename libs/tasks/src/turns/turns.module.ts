import { Module } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { EagerRunSeal } from '../eager-start/eager-run-seal.js';
import { EagerStart } from '../eager-start/eager-start.js';
import { EarlierTasks } from './earlier-tasks.js';
import { FirstRequests } from './first-requests.js';
import { TurnEnds } from './turn-ends.js';
import { TurnAcceptance } from './turn-acceptance.js';

/** How turns begin and end, and which of their runs are on the queue. */
@Module({
  providers: [RunDispatcher, EagerRunSeal, EagerStart, EarlierTasks, FirstRequests, TurnEnds, TurnAcceptance],
  exports: [RunDispatcher, EagerStart, EarlierTasks, FirstRequests, TurnEnds, TurnAcceptance],
})
export class TurnsModule {}
