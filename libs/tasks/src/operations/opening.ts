import type { StreamItem } from '@baton/a2a';

/** How a stream of a task begins. */
export interface Opening {
  /** What comes first: the task as it is, as a rule. */
  first: StreamItem | undefined;
  taskId: string;
  /** Nothing follows. */
  isOver: boolean;
}

/** Give away what comes first, and forget it: a stream may last for hours, and a task may be large. */
export function* handOver(opening: Opening): Generator<StreamItem> {
  const { first } = opening;
  opening.first = undefined;
  if (first) yield first;
}
