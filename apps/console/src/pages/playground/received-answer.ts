import type { ReceivedFrame, RecordedExchange } from '../../a2a/exchange';
import type { AnswerContent, StreamEvent } from './answer-summary';

/** The state of a call. `lost`: the network ended the stream, and the page resumes it. `cut`: the user ended it. */
export type CallState = 'idle' | 'running' | 'lost' | 'cut' | 'done' | 'failed';

/** The part of an answer that has arrived so far. */
export interface ReceivedAnswer {
  state: CallState;
  exchange: RecordedExchange | undefined;
  /** The newest frames. The page keeps a limited number. */
  frames: ReceivedFrame[];
  /** Number of all frames, also those that are no longer in `frames`. */
  count: number;
  /** The newest events, also a limited number. */
  events: StreamEvent[];
  /** The summary of all events. */
  summary: AnswerContent;
  error: unknown;
}

/** Before the first call. */
export const NO_ANSWER: ReceivedAnswer = {
  state: 'idle',
  exchange: undefined,
  frames: [],
  count: 0,
  events: [],
  summary: { artifacts: [], said: [] },
  error: undefined,
};
