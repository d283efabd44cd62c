import type { SentParams } from './sent-params.js';

type Prompt = SentParams['prompt'];
type Options = Prompt[number]['providerOptions'];

/** Anthropic takes at most four marks in a request. These are: tools, instructions and two messages. */
const MARKED_MESSAGES = 2;

/**
 * Marks what Anthropic is to keep in its cache: the tools, the instructions, and the conversation so far. The next request of
 * the task begins with the same. The end of the request before is marked, too: Anthropic searches only 20 blocks before a mark,
 * and a step may have more calls.
 */
export function withCacheMarks(params: SentParams): SentParams {
  const { prompt, tools = [] } = params;
  const instructions = prompt.findLastIndex(({ role }) => role === 'system');
  const ends = prompt.flatMap(({ role }, i) => (isEnd(role, prompt[i + 1]?.role) ? [i] : []));
  // The only message of an agent without tools: most probably nothing follows.
  const isSingle = tools.length === 0 && prompt.length - 1 === instructions + 1;
  const marked = new Set([instructions, ...(isSingle ? [] : ends.slice(-MARKED_MESSAGES))]);
  return {
    ...params,
    prompt: prompt.map((message, i) =>
      marked.has(i) ? { ...message, providerOptions: mark(message.providerOptions) } : message,
    ),
    ...(tools.length > 0 && {
      tools: tools.map((tool, i) =>
        tool.type === 'function' && i === tools.length - 1
          ? { ...tool, providerOptions: mark(tool.providerOptions) }
          : tool,
      ),
    }),
  };
}

/** Whether a message is the last one of this request, or was the last one of an earlier request. */
const isEnd = (role: Prompt[number]['role'], next: Prompt[number]['role'] | undefined): boolean =>
  (role === 'user' || role === 'tool') && (next === undefined || next === 'assistant');

const mark = (options: Options): NonNullable<Options> => ({
  ...options,
  anthropic: { ...options?.anthropic, cacheControl: { type: 'ephemeral' } },
});
