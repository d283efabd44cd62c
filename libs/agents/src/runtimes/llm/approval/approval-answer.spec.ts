import { jsonPart, plainTextPart } from '../../../agent-runtime.js';
import { userMessage } from '../../../../../../test/support/agents/turns.js';
import { readAnswer } from './approval-answer.js';

const read = (parts: Parameters<typeof userMessage>[0], waiting = ['call-1-1', 'call-1-2']) =>
  readAnswer(userMessage(parts), ['call-1-1', 'call-1-2'], waiting);
const data = (approval: unknown) => jsonPart({ approval });

describe('an answer about calls that wait for approval', () => {
  it.each(['yes', 'Yes!', ' OK. ', 'Go ahead', 'approve', 'Yes, please'])('%j approves all', (text) => {
    expect(read(text)).toEqual({
      decisions: [
        { callId: 'call-1-1', approved: true },
        { callId: 'call-1-2', approved: true },
      ],
    });
  });

  it.each(['no', 'No, use the other account', 'refuse', "Don't", 'STOP'])(
    '%j refuses all and is why',
    (text) => {
      expect(read(text, ['call-1-1'])).toEqual({
        decisions: [{ callId: 'call-1-1', approved: false, reason: text }],
      });
    },
  );

  it.each(['yes, but only the first', 'maybe', '', 'notes are fine', 'what does it do?', 'okay then no'])(
    '%j is none',
    (text) => {
      expect(read(text)).toEqual({ decisions: [], problem: 'That is neither yes nor no.' });
    },
  );

  it('decides on one call by its id, with a reason', () => {
    const one = { callId: 'call-1-2', approved: false, reason: 'too dear' };
    expect(read([data(one)])).toEqual({ decisions: [one] });
    expect(read([plainTextPart('too dear'), data({ callId: 'call-1-2', approved: false })])).toEqual({
      decisions: [one],
    });
  });

  it('decides on several calls, in one part or in several, or on all', () => {
    const both = [
      { callId: 'call-1-1', approved: true },
      { callId: 'call-1-2', approved: false },
    ];
    expect(read(both.map(data))).toEqual({ decisions: both });
    expect(read([data(both)])).toEqual({ decisions: both });
    expect(read([data({ approved: true })]).decisions).toHaveLength(2);
  });

  it('that comes again changes nothing', () => {
    expect(read([data({ callId: 'call-1-1', approved: false })], ['call-1-2'])).toEqual({ decisions: [] });
  });

  it('that contradicts itself is a refusal', () => {
    const parts = [true, false, true].map((approved) => data({ callId: 'call-1-1', approved }));
    expect(read(parts)).toEqual({ decisions: [{ callId: 'call-1-1', approved: false }] });
  });

  it.each([
    [{ callId: 'call-1-1' }, 'A data part must be {"approval": '],
    [{ callId: 'call-1-1', approved: 'true' }, 'A data part must be {"approval": '],
    [{ callId: 'call-9-9', approved: true }, 'There is no call "call-9-9".'],
    ['yes', 'A data part must be {"approval": '],
  ])('%j is none, and says what is wrong', (approval, problem) => {
    const answer = read([plainTextPart('yes'), data(approval)]);
    expect(answer.decisions).toEqual([]);
    expect(answer.problem).toContain(problem);
  });
});

describe('an answer where several agents ask', () => {
  const waiting = ['call-1-1/call-1-1', 'call-1-2/call-1-1'];
  const readAll = (parts: Parameters<typeof userMessage>[0]) =>
    readAnswer(userMessage(parts), waiting, waiting);
  const decided = (approved: boolean) =>
    waiting.map((callId) => expect.objectContaining({ callId, approved }));

  it.each([
    ['yes', 'Several agents ask'],
    ['ok', 'Several agents ask'],
    ['no', 'Several agents ask'],
    ['refuse it', 'Several agents ask'],
    ['hm', 'neither yes nor no'],
  ])('%j is none', (text, problem) => {
    expect(readAll(text)).toEqual({ decisions: [], problem: expect.stringContaining(problem) });
  });

  it('by data names the calls', () => {
    expect(readAll([data({ approved: true })]).problem).toContain('name the callId');
    const one = { callId: waiting[1]!, approved: true };
    expect(readAll([data(one)])).toEqual({ decisions: [one] });
  });

  it('in words is for all calls', () => {
    expect(readAll('Yes to all.').decisions).toEqual(decided(true));
    expect(readAll('No to all, it is late').decisions).toEqual(decided(false));
  });
});
