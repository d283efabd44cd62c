import type {
  CallContext,
  StreamingOperationName,
  StreamingOperations,
  StreamItem,
  UnaryOperationName,
  UnaryOperations,
} from '@baton/a2a';

/** A unary use case. `signal` aborts when the caller is gone; that never stops a run. */
export type UnaryOperation<K extends UnaryOperationName> = (
  call: CallContext,
  request: UnaryOperations[K]['request'],
  signal: AbortSignal,
) => Promise<UnaryOperations[K]['result']>;

/** A streaming use case. What goes wrong before the first item is thrown before it. */
export type StreamingOperation<K extends StreamingOperationName> = (
  call: CallContext,
  request: StreamingOperations[K]['request'],
  signal: AbortSignal,
) => AsyncGenerator<StreamItem>;

/** Every use case by name. To add one, add it to the maps of `@baton/a2a`; the compiler lists the rest. */
export type Operations = { [K in UnaryOperationName]: UnaryOperation<K> } & {
  [K in StreamingOperationName]: StreamingOperation<K>;
};
