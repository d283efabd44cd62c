import { callPosition, callDetail } from './call-detail.js';

const call = (toolName: string, input: unknown) => ({ type: 'tool-call', toolCallId: 'c', toolName, input });
const step = {
  kind: 'step',
  message: {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Let me ' },
      { type: 'text', text: 'look.' },
      call('weather', { city: 'Bern' }),
      call('weather', { city: 'Basel' }),
    ],
  },
};
const result = {
  kind: 'result',
  callId: 'c',
  call: 'call-1-2',
  tool: 'weather',
  result: { ok: true, content: { sun: 1 } },
};

describe('what a call has said', () => {
  it('is the text, the reasoning and the calls of a model', () => {
    expect(callDetail(step)).toEqual({
      kind: 'model',
      text: 'Let me look.',
      reasoning: 'Hm.',
      calls: [
        { tool: 'weather', input: { city: 'Bern' } },
        { tool: 'weather', input: { city: 'Basel' } },
      ],
    });
    const plain = { kind: 'step', message: { role: 'assistant', content: 'Hello.' } };
    expect(callDetail(plain)).toEqual({ kind: 'model', text: 'Hello.', reasoning: '', calls: [] });
  });

  it('is a summary of the conversation', () => {
    const summary = { kind: 'summary', steps: 3, text: 'The user wants a pie.' };
    expect(callDetail(summary)).toEqual({ kind: 'model', text: summary.text, reasoning: '', calls: [] });
  });

  it('is the input and the output of a tool', () => {
    expect(callPosition(result)).toEqual({ step: 1, index: 2 });
    const said = { kind: 'tool', tool: 'weather', input: { city: 'Basel' }, ok: true, output: { sun: 1 } };
    expect(callDetail(result, step)).toEqual(said);
    expect(callDetail(result)).toEqual({ ...said, input: undefined });
    const text = { ...result, result: { ok: false, content: [], text: 'no such city' } };
    expect(callDetail(text, step)).toMatchObject({ ok: false, output: 'no such city' });
  });

  it.each([null, 'x', {}, { kind: 'asked', at: 0 }, { kind: 'step' }, { ...result, call: undefined }])(
    'is nothing for %j',
    (entry) => {
      expect(callDetail(entry)).toBeUndefined();
      expect(callPosition(entry)).toBeUndefined();
    },
  );
});
