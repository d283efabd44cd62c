import { firstCharacters } from '@baton/a2a';
import type { Conversation } from '../conversation.js';
import { READ_RESULT, textOfResult } from '../result-output.js';
import type { AgentTool, ToolResult } from './tool-sources.js';

/** Maximum characters of one page. */
const PAGE = 20_000;
/** Characters that are shown before a match. */
const BEFORE = 200;

interface Arguments {
  result: string;
  from?: number;
  find?: string;
}

/** The tool with which the model reads on in results that were cut. The whole results are in the journal. */
export const readResultTool = (conversation: Conversation): AgentTool => ({
  name: READ_RESULT,
  description:
    `Reads on in the result of an earlier call, of which you have read only the beginning or a summary. It gives ${PAGE} characters ` +
    'at most, and says from where to read on.',
  inputSchema: {
    type: 'object',
    properties: {
      result: { type: 'string', description: 'The id of the result, as the note at its end has it' },
      from: { type: 'integer', minimum: 0, description: 'The first character to read. Default: 0' },
      find: {
        type: 'string',
        minLength: 1,
        maxLength: 1000,
        description: 'Begin where this text is next, after `from`',
      },
    },
    required: ['result'],
    additionalProperties: false,
  },
  needsApproval: false,
  isOwn: true,
  repeat: 'again',
  execute: (input) => Promise.resolve(readPage(conversation, input as Arguments)),
});

function readPage(conversation: Conversation, { result: id, from = 0, find }: Arguments): ToolResult {
  const result = conversation.resultWithId(id);
  if (!result) return { ok: false, content: `There is no result "${id}".` };
  const whole = textOfResult(result);
  const found = find === undefined ? from : whole.indexOf(find, from);
  if (found < 0) return { ok: true, content: `The text is not in the result after character ${from}.` };
  const start = find === undefined ? from : Math.max(from, found - BEFORE);
  if (start >= whole.length)
    return { ok: true, content: `The result has ${whole.length} characters. There is no more.` };
  const page = firstCharacters(whole.slice(start), PAGE);
  const end = start + page.length;
  const more = end < whole.length ? ` To read on: from ${end}.` : ' This is its end.';
  return {
    ok: true,
    content: `${page.toWellFormed()}\n[characters ${start} to ${end} of ${whole.length}.${more}]`,
  };
}
