import { z } from 'zod';

/** The answer of a model in one call. */
export interface ModelCallDetail {
  kind: 'model';
  text: string;
  reasoning: string;
  calls: { tool: string; input: unknown }[];
}

/** Input and output of a tool call. */
export interface ToolCallDetail {
  kind: 'tool';
  tool: string;
  /** As the call was made. Undefined: the answer that asks for the call is not known. */
  input: unknown;
  ok: boolean;
  /** The result as the model read it. */
  output: unknown;
}

const part = z.looseObject({ type: z.string() });
const content = z.union([z.string(), z.array(part)]);
const modelEntry = z.object({ kind: z.literal('step'), message: z.object({ content }) });
const summaryEntry = z.object({ kind: z.literal('summary'), text: z.string() });
const toolEntry = z.object({
  kind: z.literal('result'),
  call: z.string(),
  tool: z.string(),
  input: z.unknown().optional(),
  result: z.object({ ok: z.boolean(), content: z.unknown(), text: z.string().optional() }),
});

/** The ids of calls: see `callIdOf`. */
const CALL_ID = /^call-(\d{1,9})-(\d{1,9})$/;

/** The position of a tool call: the answer of the model, and the number among its calls, both from 1. */
export function callPosition(entry: unknown): { step: number; index: number } | undefined {
  const [, step, index] = CALL_ID.exec(toolEntry.safeParse(entry).data?.call ?? '') ?? [];
  return step === undefined ? undefined : { step: Number(step), index: Number(index) };
}

/**
 * The content of a model or tool call, from its entry in the journal of an llm agent. Secrets were removed when it was written.
 * @param answer for a tool call: the entry of the answer that asks for it
 * @returns undefined for an entry of another kind or of an earlier release
 */
export function callDetail(entry: unknown, answer?: unknown): ModelCallDetail | ToolCallDetail | undefined {
  const model = modelEntry.safeParse(entry).data;
  if (model) {
    const parts = partsOf(model.message.content);
    const textOf = (type: string): string =>
      parts.map((each) => (each.type === type && typeof each.text === 'string' ? each.text : '')).join('');
    return { kind: 'model', text: textOf('text'), reasoning: textOf('reasoning'), calls: callsOf(parts) };
  }
  const summary = summaryEntry.safeParse(entry).data;
  if (summary) return { kind: 'model', text: summary.text, reasoning: '', calls: [] };
  const made = toolEntry.safeParse(entry).data;
  if (!made) return undefined;
  const { tool, input, result } = made;
  const position = callPosition(entry);
  const asking = modelEntry.safeParse(answer).data;
  const asked = asking && position && callsOf(partsOf(asking.message.content))[position.index - 1];
  return {
    kind: 'tool',
    tool,
    input: input ?? asked?.input,
    ok: result.ok,
    output: result.text ?? result.content,
  };
}

type ContentPart = z.output<typeof part>;

const partsOf = (value: z.output<typeof content>): ContentPart[] =>
  typeof value === 'string' ? [{ type: 'text', text: value }] : value;

const callsOf = (parts: readonly ContentPart[]): ModelCallDetail['calls'] =>
  parts
    .filter(({ type }) => type === 'tool-call')
    .map(({ toolName, input }) => ({ tool: String(toolName), input }));
