import fc from 'fast-check';
import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { OUTCOMES, type TaskSignal } from './messaging.js';
import { withTimeout } from './with-timeout.js';
import { SignalDecoder } from './signal-decoder.js';
import { decodeSignal, encodeSignal } from './signal-text.js';

const event = (sequence: number, json: string) => ({ sequence, attempt: 1, json });

const signals = fc.record({
  lastSequence: fc.nat(),
  events: fc.array(
    fc.record(
      {
        sequence: fc.nat(),
        attempt: fc.nat(),
        json: fc.json({ stringUnit: 'binary' }),
        outcome: fc.constantFrom(...OUTCOMES),
      },
      { requiredKeys: ['sequence', 'attempt', 'json'] },
    ),
  ),
});

describe('a task signal on the wire', () => {
  it('comes back as it was, whatever the JSON holds', () => {
    fc.assert(
      fc.property(signals, (signal: TaskSignal) => {
        expect(decodeSignal(encodeSignal(signal, 1e9))).toEqual(signal);
      }),
    );
  });

  it('keeps the JSON of an event untouched, down to its spaces', () => {
    const json = '{ "text" : "a\\nb",\n "n": 1.0 }';
    const text = encodeSignal({ lastSequence: 3, events: [event(3, json)] }, 1_000);
    expect(decodeSignal(text).events[0]?.json).toBe(json);
  });

  it('carries its last sequence only, when the events are too big', () => {
    const events = [event(7, '"short"'), event(8, JSON.stringify('x'.repeat(1_000)))];
    expect(decodeSignal(encodeSignal({ lastSequence: 8, events }, 1_000))).toEqual({
      lastSequence: 8,
      events: [],
    });
  });

  it('counts bytes, not characters', () => {
    const signal = { lastSequence: 1, events: [event(1, JSON.stringify('é'.repeat(600)))] };
    expect(decodeSignal(encodeSignal(signal, 1_000)).events).toHaveLength(0);
    expect(decodeSignal(encodeSignal(signal, 1_300)).events).toHaveLength(1);
  });

  it('is decoded once for listeners that get it one after another', () => {
    const decoder = new SignalDecoder();
    const [one, other] = [3, 4].map((sequence) =>
      encodeSignal({ lastSequence: sequence, events: [event(sequence, '"a"')] }, 1_000),
    );
    const first = decoder.decode(one!);
    expect(decoder.decode(one!)).toBe(first);
    expect(decoder.decode(other!).lastSequence).toBe(4);
    expect(decoder.decode(one!)).toEqual(first);
    expect(() => decoder.decode('x\n')).toThrow();
    expect(() => decoder.decode('x\n')).toThrow();
  });

  it.each(['', 'x\n', '\n', '3', '3 4,1,5\n"ab"', '3 4,1,2\n"ab"', '3 4,1\n', '3 -4,1,2\n""', '3 4,1,x\n""'])(
    'refuses %j',
    (text) => {
      expect(() => decodeSignal(text)).toThrow();
    },
  );
});

describe('a time limit', () => {
  it('ends what takes longer', async () => {
    await expect(withTimeout(5, new Promise(() => undefined), 'no answer in time')).rejects.toThrow(
      'no answer in time',
    );
  });

  it('takes an answer that came in time, if this process was too busy to read it', async () => {
    const { port1, port2 } = new MessageChannel();
    try {
      const message = once(port1, 'message');
      // From here Node.js continues with timers.
      await new Promise(setImmediate);
      const answer = withTimeout(5, message, 'no answer in time');
      port2.postMessage('here');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
      expect(await answer).toEqual(['here']);
    } finally {
      port1.close();
    }
  });
});
