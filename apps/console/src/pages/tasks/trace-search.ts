import { type RestSpan, SPAN_KINDS, type TraceFilter } from '@baton/contract';

/** The filter of a trace in the address of a task. */
export interface TraceSearch {
  find?: string;
  kind?: RestSpan['kind'];
  errors?: 'true';
  slow?: SlowChoice;
}

/** How long a span takes at least, in ms. */
const SLOW = { '1s': 1_000, '10s': 10_000, '1min': 60_000, '1h': 3_600_000 } as const;
type SlowChoice = keyof typeof SLOW;

/** The choices of `slow`, as they are shown. */
export const SLOW_CHOICES: readonly { value: SlowChoice; label: string }[] = [
  { value: '1s', label: 'at least 1 s' },
  { value: '10s', label: 'at least 10 s' },
  { value: '1min', label: 'at least 1 min' },
  { value: '1h', label: 'at least 1 h' },
];

const MAX_TEXT = 200;

/** Reads the filter of an address. Other keys are left out. */
export function readTraceSearch({ find, kind, errors, slow }: Record<string, unknown>): TraceSearch {
  // The router reads a number where the text is one.
  const text = typeof find === 'string' || typeof find === 'number' ? String(find).slice(0, MAX_TEXT) : '';
  const knownKind = SPAN_KINDS.find((each) => each === kind);
  const knownSlow = SLOW_CHOICES.find(({ value }) => value === slow);
  return {
    ...(text !== '' && { find: text }),
    ...(knownKind && { kind: knownKind }),
    ...(String(errors) === 'true' && { errors: 'true' }),
    ...(knownSlow && { slow: knownSlow.value }),
  };
}

/** The filter for the rows of a trace. Undefined: nothing is filtered. */
export function traceFilterOf({ find, kind, errors, slow }: TraceSearch): TraceFilter | undefined {
  const filter: TraceFilter = {
    ...(find !== undefined && { text: find }),
    ...(kind && { kind }),
    ...(errors && { errors: true }),
    ...(slow && { minMs: SLOW[slow] }),
  };
  return Object.keys(filter).length > 0 ? filter : undefined;
}
