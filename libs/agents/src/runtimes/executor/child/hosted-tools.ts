import type { CodeTools, ModelTool, ToolAnswer } from './steps.js';

/** Makes a tool call, as a step. */
export type CallTool = (tool: string, input: unknown) => Promise<ToolAnswer>;

/** How the AI SDK marks a schema. */
const SCHEMA = Symbol.for('vercel.ai.schema');

/** The tools of MCP servers for the code of an agent. */
export class HostedTools implements CodeTools {
  constructor(
    readonly list: ModelTool[],
    readonly call: CallTool,
  ) {}

  get sdk(): Record<string, never> {
    const tools = this.list.map(({ name, description, inputSchema }) => [
      name,
      {
        description,
        inputSchema: { [SCHEMA]: true, jsonSchema: inputSchema, validate: undefined },
        execute: (input: unknown) => this.execute(name, input),
      },
    ]);
    return Object.fromEntries(tools) as Record<string, never>;
  }

  /** The AI SDK sends the message of a thrown error to the model. */
  private async execute(name: string, input: unknown): Promise<unknown> {
    const { ok, content, text } = await this.call(name, input);
    if (ok) return text ?? content;
    throw new Error(text ?? (typeof content === 'string' ? content : JSON.stringify(content)));
  }
}
