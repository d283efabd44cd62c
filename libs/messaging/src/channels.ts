import type { Logger } from '@baton/telemetry';
import { OUTCOMES, type Unsubscribe, type PublishedEvent, type TaskSignal } from './messaging.js';

/** Where messaging logs warnings. */
export type MessagingLog = Pick<Logger, 'info' | 'warn' | 'error'>;

const QUIET_MS = 10_000;

/**
 * Writes the same warning at most once in ten seconds: while a server is away, every connection reports it on
 * every try.
 */
export class QuietLog {
  private readonly lastAt = new Map<string, number>();

  constructor(private readonly log: MessagingLog) {}

  warn(message: string, error: unknown): void {
    const reason = reasonOf(error);
    const key = `${message}: ${reason}`;
    const now = Date.now();
    if (now - (this.lastAt.get(key) ?? -Infinity) < QUIET_MS) return;
    if (this.lastAt.size > 100) this.lastAt.clear();
    this.lastAt.set(key, now);
    this.log.warn(message, { reason });
  }

  info(message: string): void {
    this.log.info(message);
  }
}

/** Why it failed, in one line; connection errors of Node may have an empty message and only a code. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.message || ('code' in error && String(error.code)) || error.name;
}

/**
 * Waits for `work`, but not longer than `ms`. An answer that came while this process was busy with other work is read first.
 * Rejects as `work` does, or with `reason` when the time is up (the work itself is not stopped).
 */
export async function within<T>(ms: number, work: Promise<T>, reason: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    // Node.js runs timers before it reads sockets, and immediates after.
    timer = setTimeout(() => setImmediate(() => reject(new Error(reason))), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The listeners of each channel in this process. A channel exists as long as it has a listener. */
export class ChannelListeners {
  private readonly byChannel = new Map<string, Set<(text: string) => void>>();

  /** @returns whether the channel is new */
  add(channel: string, listener: (text: string) => void): boolean {
    const listeners = this.byChannel.get(channel);
    if (listeners) {
      listeners.add(listener);
      return false;
    }
    this.byChannel.set(channel, new Set([listener]));
    return true;
  }

  /** @returns whether that was the channel's last listener */
  remove(channel: string, listener: (text: string) => void): boolean {
    const listeners = this.byChannel.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return false;
    this.byChannel.delete(channel);
    return true;
  }

  has(channel: string): boolean {
    return this.byChannel.has(channel);
  }

  channels(): string[] {
    return [...this.byChannel.keys()];
  }

  /** Passes the text to every listener of the channel. A listener that throws does not affect the others. */
  dispatch(channel: string, text: string, failed: (error: unknown) => void): void {
    for (const listener of this.byChannel.get(channel) ?? []) {
      try {
        listener(text);
      } catch (error) {
        failed(error);
      }
    }
  }
}

/** Listeners for the return of a lost connection. */
export class ReconnectListeners {
  private readonly listeners = new Set<() => void>();

  constructor(private readonly log: QuietLog) {}

  add(listener: () => void): Unsubscribe {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  call(): void {
    for (const listener of this.listeners) {
      try {
        listener();
      } catch (error) {
        this.log.warn('reconnect listener failed', error);
      }
    }
  }
}

/**
 * A task signal as one text: a header line, then the JSON texts of the events one after the other, as they
 * came. The header is `<lastSequence>` followed by ` <sequence>,<attempt>,<length>` for each event (length in
 * UTF-16 units), so that neither side parses or copies an event's JSON:
 *
 *     12 11,1,24 12,1,9
 *     {"statusUpdate":{"a":1}}{"b":"c"}
 *
 * @param limitBytes a longer signal is cut down to its lastSequence; its receivers read the log
 */
export function encodeSignal(signal: TaskSignal, limitBytes: number): string {
  let header = String(signal.lastSequence);
  let body = '';
  for (const { sequence, attempt, json, outcome } of signal.events) {
    header += ` ${sequence},${attempt},${json.length}`;
    if (outcome) header += `,${OUTCOMES.indexOf(outcome)}`;
    body += json;
  }
  const text = `${header}\n${body}`;
  return fits(text, limitBytes) ? text : `${signal.lastSequence}\n`;
}

/** Reads what `encodeSignal` wrote. Throws on anything else. */
export function decodeSignal(text: string): TaskSignal {
  const end = text.indexOf('\n');
  const [lastSequence, ...frames] = text.slice(0, Math.max(end, 0)).split(' ');
  let from = end + 1;
  const events = frames.map((frame): PublishedEvent => {
    const [sequence, attempt, length, outcomeAt] = frame.split(',').map(Number);
    const json = text.slice(from, (from += length ?? NaN));
    const outcome = outcomeAt === undefined ? undefined : OUTCOMES[outcomeAt];
    return { sequence: whole(sequence), attempt: whole(attempt), json, ...(outcome && { outcome }) };
  });
  if (from !== text.length) throw new Error('task signal is truncated or has trailing bytes');
  return { lastSequence: whole(Number(lastSequence || NaN)), events };
}

/** Decodes signals once for all listeners of a channel, who get the same text one after another. */
export class SignalDecoder {
  private text: string | undefined;
  private signal: TaskSignal = { lastSequence: 0, events: [] };

  /** The listeners share the result, so they must not change it. */
  decode(text: string): TaskSignal {
    if (text === this.text) return this.signal;
    this.text = undefined;
    this.signal = decodeSignal(text);
    this.text = text;
    return this.signal;
  }
}

function whole(value: number | undefined): number {
  if (value === undefined || !Number.isSafeInteger(value) || value < 0) throw new Error('not a task signal');
  return value;
}

/** Whether the text is at most `limit` bytes of UTF-8; counts bytes only when the length leaves it open. */
function fits(text: string, limit: number): boolean {
  if (text.length > limit) return false;
  return text.length * 3 <= limit || Buffer.byteLength(text) <= limit;
}
