import { Message, type Part, SendMessageRequest } from '@a2a-js/sdk';
import { cut } from '../protocol.js';
import { STEP_LIMITS } from '../step-protocol.js';
import type { Duration, InputAnswer } from './steps.js';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration in ms. @throws TypeError for another text */
export function milliseconds(duration: Duration): number {
  const [, amount, unit = ''] = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(String(duration)) ?? [];
  const ms = typeof duration === 'number' ? duration : Number(amount) * (UNITS[unit] ?? Number.NaN);
  if (ms >= 0 && ms <= STEP_LIMITS.sleepMs) return ms;
  throw new TypeError(
    'a duration must be milliseconds, or a text such as 500ms, 30s, 5m, 2h or 7d, and at most a year',
  );
}

/** Parts as ProtoJSON. */
export const partsOf = (parts: Part[]): unknown[] =>
  (Message.toJSON({ parts } as Message) as { parts?: unknown[] }).parts ?? [];

/** For JSON.stringify. @throws TypeError for a value that JSON would change silently */
function assertKept(key: string, value: unknown): unknown {
  const what = changedByJson(value);
  if (what === undefined) return value;
  throw new TypeError(
    `${key === '' ? 'it' : `"${cut(key, 100)}" in it`} is ${what}, which JSON does not keep`,
  );
}

/** A value that JSON.stringify makes `{}`, `null` or nothing of, in words. */
function changedByJson(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : String(value);
  for (const type of [Map, Set, WeakMap, WeakSet, Promise, RegExp, Error, ArrayBuffer]) {
    if (value instanceof type) return `of type ${type.name}`;
  }
  return ArrayBuffer.isView(value) && !Buffer.isBuffer(value) ? 'a typed array' : undefined;
}

/** @throws TypeError for a value that JSON cannot hold, RangeError for a value that is too large */
export function jsonOf(
  value: unknown,
  what: string,
  maxBytes: number = STEP_LIMITS.resultBytes,
): string | undefined {
  let json: string | undefined;
  try {
    json = JSON.stringify(value, assertKept) as string | undefined;
  } catch (error) {
    throw new TypeError(
      `${what} must be a JSON value: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (json !== undefined && (json.length > maxBytes || Buffer.byteLength(json) > maxBytes)) {
    throw new RangeError(
      `${what} has at most ${maxBytes} bytes of JSON: store more elsewhere, and return where`,
    );
  }
  return json;
}

/** Every attempt gets a value that was read from JSON, also the attempt that made it. */
export const valueOf = (json: string | undefined): unknown =>
  // oxlint-disable-next-line no-restricted-properties -- bounded, and of this agent's code
  json === undefined ? undefined : (JSON.parse(json) as unknown);

/** As `TurnSteps` writes it. */
export function answerOf(json: unknown): InputAnswer {
  const { message, request } = json as { message: unknown; request: unknown };
  const { metadata, configuration } = SendMessageRequest.fromJSON(request);
  return { ...Message.fromJSON(message), request: { metadata, configuration } };
}
