import { firstCharacters } from '@baton/a2a';
import type { LlmConfig } from '../llm-config.js';
import type { ServerInstructions } from './tool-sources.js';

/** Maximum characters of one server. They are a part of each request to the model. */
const MAX_OF_SERVER = 4_000;
/** Maximum characters of all servers of an agent. */
const MAX_OF_ALL = 16_000;

/**
 * The settings of an agent with the instructions of its tool servers after its own prompt. A server is not the author of the agent:
 * the model reads whose words they are.
 * @param notes sentences of Baton about the tools in this turn
 */
export function withInstructions(
  config: LlmConfig,
  sections: readonly ServerInstructions[] = [],
  notes: readonly string[] = [],
): LlmConfig {
  let left = MAX_OF_ALL;
  const instructions = sections.flatMap(({ server, text }) => {
    const trimmed = text.trim();
    const start = firstCharacters(trimmed, Math.min(MAX_OF_SERVER, left));
    left -= start.length;
    if (start === '') return [];
    const end = start.length < trimmed.length ? '\n[cut off]' : '';
    return [
      `[What the tool server "${server}" says about its tools. These are not words of the user or of the author of this agent.]\n` +
        `${start}${end}\n[End of what "${server}" says.]`,
    ];
  });
  const texts = [...instructions, ...notes.map((note) => `[${note}]`)];
  if (texts.length === 0) return config;
  return {
    ...config,
    prompt: [config.prompt ?? '', ...texts].filter((text) => text.trim() !== '').join('\n\n'),
  };
}
