import type { Part } from '../model.js';
import { sampleMessage, textPart } from '../../../../test/support/a2a/samples.js';
import { errorOf } from '../../../../test/support/a2a/profile.js';
import { assertParts } from './profile.js';
import { SPEC_PROFILE } from './spec.js';

const agentWith = (inputModes: string[], ofSkill: string[] = []) =>
  ({ definition: { inputModes, skills: [{ inputModes: ofSkill }] } }) as never;

const part = (content: Part['content'], mediaType = ''): Part => ({
  content,
  mediaType,
  filename: '',
  metadata: undefined,
});
const text = textPart('hi');
const data = part({ $case: 'data', value: { city: 'Rome' } });
const file = (mediaType: string) => part({ $case: 'url', value: 'https://x.test/y' }, mediaType);
const send = (parts: Part[], agent: never, taskId = '') =>
  assertParts(SPEC_PROFILE.parts, sampleMessage({ parts, taskId }), agent);

describe('the input modes of an agent', () => {
  it.each<[string[], string, Part]>([
    [[], 'text', text],
    [[], 'any file', file('application/x-unheard-of')],
    [['text/plain'], 'text', text],
    [['text/plain; charset=utf-8'], 'text', text],
    [['text/plain'], 'a file of text', file('Text/Plain; charset=utf-8')],
    [['application/json'], 'data', data],
    [['image/*'], 'an image', file('image/png')],
    [['*/*'], 'any file', file('audio/ogg')],
    [['*/*'], 'a file without a media type', file('')],
    [['image/png'], 'a file without a media type', file('')],
    [['text'], 'text, by the word of 0.2', text],
    [['file'], 'a file, by the word of 0.2', file('audio/ogg')],
  ])('%j take %s', (modes, _what, sent) => {
    expect(() => send([sent], agentWith(modes))).not.toThrow();
  });

  it.each<[string[], string, Part, RegExp]>([
    [['text/plain'], 'data', data, /^message.parts\[1\]: the media type "application\/json"/],
    [
      ['text/plain'],
      'an image',
      file('image/png'),
      /"image\/png" is not supported .*: send one of text\/plain$/,
    ],
    [['text/plain'], 'a file without a media type', file(''), /a file without a media type/],
    [['text/plain', 'image/*'], 'audio', file('audio/ogg'), /send one of text\/plain, image\/\*/],
    [['text/plain', 'image/*'], 'another type that begins so', file('imagery/png'), /imagery/],
    [
      ['text/plain'],
      'text of another type',
      part({ $case: 'text', value: '#' }, 'text/markdown'),
      /markdown/,
    ],
  ])('%j refuse %s with -32005, and say where and what to send', (modes, _what, sent, message) => {
    const error = errorOf(() => send([textPart('x'), sent], agentWith(modes)));
    expect(error.kind).toBe('content-type-not-supported');
    expect(error.message).toMatch(message);
    expect(error.detail.violations).toMatchObject([{ field: 'message.parts[1]' }]);
  });

  it('refuse text where only other types are declared', () => {
    expect(errorOf(() => send([text], agentWith(['image/*']))).kind).toBe('content-type-not-supported');
  });

  it('include those of each skill', () => {
    expect(() => send([file('image/png')], agentWith(['text/plain'], ['image/png']))).not.toThrow();
  });

  it('do not count for the answer to a question for approval, which no agent reads', () => {
    const answer = part({ $case: 'data', value: { approval: { approved: true } } });
    expect(() => send([answer], agentWith(['text/plain']), 'task-1')).not.toThrow();
    expect(errorOf(() => send([answer], agentWith(['text/plain']))).kind).toBe('content-type-not-supported');
    expect(errorOf(() => send([data], agentWith(['text/plain']), 'task-1')).kind).toBe(
      'content-type-not-supported',
    );
  });

  it('quote little of a long media type', () => {
    const error = errorOf(() => send([file(`image/${'x'.repeat(10_000)}`)], agentWith(['text/plain'])));
    expect(error.message.length).toBeLessThan(300);
  });
});
