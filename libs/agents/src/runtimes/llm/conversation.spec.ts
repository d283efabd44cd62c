import { firstTurn } from '../../../../../test/support/agents/turns.js';
import { Conversation } from './conversation.js';
import { conversationMessages } from './conversation-messages.js';
import type { LlmEntry } from './llm-entry.js';
import { NO_USAGE } from './model-usage.js';

const step = (...ids: string[]): LlmEntry => ({
  kind: 'step',
  finish: 'tool-calls',
  usage: NO_USAGE,
  model: 'm',
  message: {
    role: 'assistant',
    content: ids.map((toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 't', input: {} })),
  },
});
const result = (callId: string, content: string): LlmEntry => ({
  kind: 'result',
  callId,
  result: { ok: true, content },
});

/** The conversation of a journal that says this. */
function conversationOf(...values: LlmEntry[]): Promise<Conversation> {
  const turn = firstTurn('hi');
  const entries = values.map((value, i) => ({ runId: turn.runId, position: i + 1, value }));
  const journal = { ...turn.journal, read: () => Promise.resolve(entries) };
  return Conversation.open({ ...turn, journal });
}

describe('a conversation', () => {
  it('distinguishes the calls of models that number them anew with every answer', async () => {
    const conversation = await conversationOf(
      step('1', '2'),
      result('2', 'b'),
      result('1', 'a'),
      result('1', 'too late'),
      step('1', '2'),
      { kind: 'begun', callId: '1' } as const,
      result('2', 'c'),
    );
    const results = [1, 2].map((at) =>
      conversation.callsOf(at).map((call) => conversation.resultOf(call)?.content),
    );
    expect(results).toEqual([
      ['a', 'b'],
      [undefined, 'c'],
    ]);
    expect(conversation.pendingCalls()).toMatchObject([{ toolCallId: '1', step: 2 }]);
    expect(conversation.callsOf(2).map((call) => conversation.hasBegun(call))).toEqual([true, false]);
  });

  it('of a thousand steps with a hundred calls each is read at once', async () => {
    const ids = Array.from({ length: 100 }, (_, i) => String(i));
    const round = [step(...ids), ...ids.map((id) => result(id, 'x'))];
    const conversation = await conversationOf(...Array.from({ length: 1_000 }, () => round).flat());
    const messages = await conversationMessages(
      conversation,
      { model: 'm', index: 0, files: {}, window: 128_000 },
      () => Promise.reject(new Error('nothing was asked')),
    );
    expect(messages).toHaveLength(2_000);
    expect(conversation.pendingCalls()).toEqual([]);
  });
});
