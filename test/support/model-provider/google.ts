import { type Dialect, type ProviderEvent, type Reply, chunksOf, usageOf, wholeOf } from './reply.js';

const FINISH = { stop: 'STOP', length: 'MAX_TOKENS', filter: 'SAFETY' } as const;

const finishOf = ({ finish, reason }: Reply): string => reason ?? FINISH[finish ?? 'stop'];

function usageMetadata(reply: Reply) {
  const { input, output, cached, reasoning } = usageOf(reply);
  return {
    promptTokenCount: input,
    candidatesTokenCount: output - reasoning,
    thoughtsTokenCount: reasoning,
    cachedContentTokenCount: cached,
    totalTokenCount: input + output,
  };
}

const calls = (reply: Reply) =>
  (reply.calls ?? []).map(({ name, input, id }) => ({
    functionCall: { name, args: input, ...(id !== undefined && { id }) },
  }));

const ERRORS: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
};

/** Google's generateContent. */
export const google: Dialect = {
  whole: (reply) => ({
    candidates: [
      {
        content: {
          role: 'model',
          parts: [
            ...(reply.reasoning ? [{ text: wholeOf(reply.reasoning), thought: true }] : []),
            ...(reply.text === undefined ? [] : [{ text: wholeOf(reply.text) }]),
            ...calls(reply),
          ],
        },
        finishReason: finishOf(reply),
        index: 0,
      },
    ],
    usageMetadata: usageMetadata(reply),
  }),

  events(reply): ProviderEvent[] {
    const chunk = (part: object) => ({
      data: { candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }] },
    });
    return [
      ...chunksOf(reply.reasoning).map((text) => chunk({ text, thought: true })),
      ...chunksOf(reply.text).map((text) => chunk({ text })),
      ...calls(reply).map(chunk),
      {
        data: {
          candidates: [
            {
              content: { role: 'model', parts: [{ text: '' }] },
              finishReason: finishOf(reply),
            },
          ],
          usageMetadata: usageMetadata(reply),
        },
      },
    ];
  },

  error: (status, message) => ({
    error: {
      code: status,
      message,
      status: ERRORS[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL'),
    },
  }),
  errorEvent: (message) => ({ data: { error: { code: 500, message, status: 'INTERNAL' } } }),
};
