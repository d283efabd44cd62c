import { type Message, type Principal, Role, type SendMessageRequest, tokenPrincipal } from '@baton/a2a';
import { messageKey } from './message-key.js';

type Content = Message['parts'][number]['content'];

const part = (content: Content) => ({ content, metadata: undefined, filename: '', mediaType: '' });
const text = (value: string) => part({ $case: 'text', value });
const data = (value: unknown) => part({ $case: 'data', value });

const message = (more: Partial<Message> = {}): Message => ({
  messageId: 'm-1',
  contextId: '',
  taskId: '',
  role: Role.ROLE_USER,
  parts: [text('hello')],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
  ...more,
});

interface Sent {
  agent?: string;
  principal?: Principal;
  clientTaskId?: string;
  header?: string;
  metadata?: SendMessageRequest['metadata'];
  configuration?: SendMessageRequest['configuration'];
}

const TOKEN = tokenPrincipal('a');
const GUEST: Principal = { kind: 'guest', key: 'guest:host:a' };

const keyOf = (
  said: Message,
  { agent = 'echo', principal = TOKEN, clientTaskId, header, metadata, configuration }: Sent = {},
) =>
  messageKey(
    { agent: { id: agent } as never, principal, clientTaskId, idempotencyKey: header },
    { tenant: '', message: said, configuration, metadata },
    said,
  );
const hex = (said: Message, sent?: Sent): string | undefined => keyOf(said, sent)?.hash.toString('hex');
const contentOf = (said: Message, sent?: Sent): string | undefined =>
  keyOf(said, { header: 'k', ...sent })?.content?.toString('hex');

describe('the key of a message', () => {
  it('is a hash of all of it', () => {
    const key = keyOf(message());
    expect(key?.hash).toHaveLength(32);
    expect(key?.content).toBeNull();
  });

  it('is the same for the same message, whatever the order of members in its JSON', () => {
    const one = message({ metadata: { a: 1, b: { c: [1, 2], d: null } }, parts: [data({ x: 1, y: 2 })] });
    const two = message({ parts: [data({ y: 2, x: 1 })], metadata: { b: { d: null, c: [1, 2] }, a: 1 } });
    expect(hex(two)).toBe(hex(one));
    expect(hex(two, { metadata: { p: 1, q: 2 } })).toBe(hex(one, { metadata: { q: 2, p: 1 } }));
  });

  it('is the same however numbers are written', () => {
    const numbers = (json: string) => hex(message({ parts: [data(JSON.parse(json))] }));
    expect(numbers('[1.0, 1e2, -0]')).toBe(numbers('[1, 100, 0]'));
    expect(numbers('[1]')).not.toBe(numbers('["1"]'));
  });

  it('is the same for every form of answer', () => {
    const configuration = {
      acceptedOutputModes: ['text/plain'],
      taskPushNotificationConfig: undefined,
      historyLength: 3,
      returnImmediately: true,
    };
    expect(hex(message(), { configuration })).toBe(hex(message()));
  });

  const others: [string, Message, Sent?][] = [
    ['messageId', message({ messageId: 'm-2' })],
    ['context', message({ contextId: 'c' })],
    ['task', message({ taskId: 't' })],
    ['the same id as task and not as context', message({ taskId: 'c' })],
    ['text', message({ parts: [text('hello ')] })],
    ['kind of part', message({ parts: [data('hello')] })],
    ['bytes', message({ parts: [part({ $case: 'raw', value: Buffer.from('hello') })] })],
    ['other bytes', message({ parts: [part({ $case: 'raw', value: Buffer.from([0xff, 0]) })] })],
    ['order of parts', message({ parts: [text('a'), text('b')] })],
    ['other order of parts', message({ parts: [text('b'), text('a')] })],
    ['parts joined', message({ parts: [text('ab')] })],
    ['media type', message({ parts: [{ ...text('hello'), mediaType: 'text/plain' }] })],
    ['file name', message({ parts: [{ ...text('hello'), filename: 'a' }] })],
    ['metadata of a part', message({ parts: [{ ...text('hello'), metadata: { a: 1 } }] })],
    ['metadata', message({ metadata: { a: 1 } })],
    ['extensions', message({ extensions: ['urn:x'] })],
    ['references', message({ referenceTaskIds: ['urn:x'] })],
    ['metadata of the request', message(), { metadata: { a: 1 } }],
    ['agent', message(), { agent: 'other' }],
    ['U+0000', message({ parts: [text('hello\0')] })],
    ['composed', message({ parts: [text('\u00e9')] })],
    ['decomposed', message({ parts: [text('e\u0301')] })],
    ['a lone surrogate', message({ parts: [text('\ud800')] })],
    ['another lone surrogate', message({ parts: [text('\ud801')] })],
    ['the replacement character', message({ parts: [text('\ufffd')] })],
    ['another token', message(), { principal: tokenPrincipal('b') }],
    ['a guest', message(), { principal: GUEST }],
    ['an Idempotency-Key of another token', message(), { header: 'm-1', principal: tokenPrincipal('b') }],
    ['an Idempotency-Key', message(), { header: 'm-1' }],
    ['another Idempotency-Key', message(), { header: 'm-2' }],
    ['an Idempotency-Key at another agent', message(), { header: 'm-1', agent: 'other' }],
  ];

  it('is another one if anything else is sent', () => {
    const seen = new Map([[hex(message()), 'the message itself']]);
    for (const [what, said, sent] of others) {
      const key = hex(said, sent);
      expect([what, seen.get(key)]).toEqual([what, undefined]);
      seen.set(key, what);
    }
  });

  it('is searched in the form of an earlier release, for tokens alone', () => {
    const known = keyOf(message())?.earlierHash;
    expect(known).toHaveLength(32);
    expect(keyOf(message(), { principal: tokenPrincipal('b') })?.earlierHash).toEqual(known);
    expect(keyOf(message(), { principal: GUEST })?.earlierHash).toBeUndefined();
  });

  it('is none without a messageId, and where the caller has chosen the id of the task', () => {
    expect(keyOf(message({ messageId: '' }))).toBeUndefined();
    expect(keyOf(message(), { clientTaskId: 'job' })).toBeUndefined();
  });
});

describe('the key of a message with an Idempotency-Key', () => {
  it('is the header alone; the content is beside it', () => {
    const other = message({ parts: [text('other')] });
    expect(hex(other, { header: 'k' })).toBe(hex(message(), { header: 'k' }));
    expect(contentOf(other)).not.toBe(contentOf(message()));
    expect(contentOf(message({ contextId: 'c' }))).not.toBe(contentOf(message()));
    expect(contentOf(message(), { metadata: { a: 1 } })).not.toBe(contentOf(message()));
    expect(contentOf(message(), { clientTaskId: 'a' })).not.toBe(contentOf(message()));
  });

  it('does not mind another messageId, or none', () => {
    expect(contentOf(message({ messageId: 'm-2' }))).toBe(contentOf(message()));
    expect(contentOf(message({ messageId: '' }))).toBe(contentOf(message()));
  });
});
