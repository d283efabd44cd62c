import type { FinishReason } from 'ai';
import type { LlmConfig } from './llm-config.js';

/** Verdict on an answer by the reason of its end. Only the calls of a `whole` answer are made. */
type Ending =
  | 'whole'
  /** The answer has reached a limit of tokens. */
  | 'cut-off'
  /** Prompt and answer have filled the model's context. */
  | 'context-full'
  | 'filtered'
  /** The provider could not read the call that the model wrote. */
  | 'unreadable-call'
  /** The provider waits to continue the answer. Baton uses none of the provider's own tools, so it never should. */
  | 'paused'
  /** The provider has failed. Another try may help. */
  | 'failed'
  /** A reason that is not in the table. */
  | 'unknown'
  /** No reason: the stream ended before the answer did. */
  | 'broken';

/**
 * The reasons of providers, in lower case. OpenAI, Anthropic and Google document theirs. The others are of servers that
 * have the chat completions API of OpenAI: vLLM, SGLang, TGI, Together, Mistral, DeepSeek, GLM, Cohere, watsonx, and
 * gateways to Bedrock.
 */
const REASONS: Record<Exclude<Ending, 'unknown' | 'broken'>, string> = {
  whole: `
    stop end_turn stop_sequence eos eos_token end complete completed normal
    tool_calls tool_call tool_use function_call tool-calls`,
  'cut-off': 'length max_tokens max_output_tokens max_length model_length token_limit continuation',
  'context-full': 'model_context_window_exceeded context_window_exceeded context_length_exceeded',
  filtered: `
    content_filter content_filtered content-filter refusal guardrail_intervened sensitive error_toxic
    safety recitation blocklist prohibited_content spii language model_armor jailbreak
    image_safety image_prohibited_content image_recitation`,
  'unreadable-call': `
    malformed_function_call unexpected_tool_call too_many_tool_calls malformed_tool_use
    malformed_response malformed_model_output`,
  paused: 'pause_turn compaction',
  failed: `
    error failed insufficient_system_resource network_error error_limit timeout time_limit
    abort aborted cancelled canceled user_cancel`,
};

const ENDINGS = new Map(
  Object.entries(REASONS).flatMap(([ending, reasons]) =>
    reasons
      .trim()
      .split(/\s+/)
      .map((reason) => [reason, ending as Ending] as const),
  ),
);

/** Why an answer ended: the reason in the words of the AI SDK, and the provider's own. */
export interface Finish {
  finish: FinishReason;
  /** Undefined: the provider gave none, or an earlier release recorded the step. */
  rawFinish?: string | undefined;
}

/**
 * Judges the end of an answer. The provider's own reason decides, because the AI SDK counts some reasons of partial
 * answers as `stop`, `tool-calls` or `other`.
 */
export function endingOf({ finish, rawFinish }: Finish): Ending {
  // A refusal of OpenAI ends with "stop".
  if (finish === 'content-filter') return 'filtered';
  if (rawFinish !== undefined && rawFinish.trim() !== '') {
    const reason = rawFinish.trim().toLowerCase();
    // Google's endpoint for clients of OpenAI writes "function_call_filter: MALFORMED_FUNCTION_CALL".
    const detail = reason.slice(reason.lastIndexOf(':') + 1).trim();
    const kind = reason.split(':')[0]?.trim() ?? '';
    return ENDINGS.get(reason) ?? ENDINGS.get(detail) ?? ENDINGS.get(kind) ?? 'unknown';
  }
  if (finish === 'stop' || finish === 'tool-calls') return 'whole';
  if (finish === 'length') return 'cut-off';
  return finish === 'error' ? 'failed' : 'broken';
}

/** The reason in the words of the AI SDK, by the ending. */
export function finishOf(ending: Ending, hasCalls: boolean): FinishReason {
  switch (ending) {
    case 'whole':
      return hasCalls ? 'tool-calls' : 'stop';
    case 'cut-off':
    case 'context-full':
      return 'length';
    case 'filtered':
      return 'content-filter';
    case 'unreadable-call':
    case 'failed':
      return 'error';
    default:
      return 'other';
  }
}

/** Maximum characters of a provider's reason that are kept. */
export const MAX_REASON = 100;

/**
 * Why an answer is not whole, with the remedy, for the caller. Undefined if it is, or if the model can correct it.
 * @param hasCalls whether the answer has calls, which were not made
 */
export function partialAnswer(
  step: Finish,
  hasCalls: boolean,
  { maxOutputTokens, budget }: Pick<LlmConfig, 'maxOutputTokens' | 'budget'>,
): string | undefined {
  const raw = step.rawFinish === undefined ? '' : ` The provider's reason is "${step.rawFinish}".`;
  const more = `${hasCalls ? ' The calls of the answer were not made.' : ''}${raw}`;
  const setting = budget.tokens === undefined ? 'maxOutputTokens' : 'maxOutputTokens or budget.tokens';
  const bound = maxOutputTokens === undefined ? '' : ` of ${maxOutputTokens}`;
  switch (endingOf(step)) {
    case 'whole':
    case 'unreadable-call':
      return undefined;
    // Earlier releases recorded steps without the provider's reason, and judged them then.
    case 'broken':
      return undefined;
    case 'cut-off':
      return `The answer was cut off at the limit${bound} of its tokens: raise ${setting} of the agent's settings.${more}`;
    case 'context-full':
      return (
        "The answer was cut off because the conversation has filled the model's context: send less, lower " +
        `memory.tokens of the agent's settings, or choose a model with a larger context.${more}`
      );
    case 'filtered':
      return `The provider's filter has stopped the answer: put the question differently.${more}`;
    case 'paused':
      return `The provider has paused the answer, and Baton does not continue it: ask for less.${more}`;
    case 'failed':
      return `The provider has failed in the middle of the answer: try again later.${more}`;
    case 'unknown':
      return (
        'The answer ended for a reason that Baton does not know, so it may be incomplete: try again, or choose ' +
        `another model.${more}`
      );
  }
}
