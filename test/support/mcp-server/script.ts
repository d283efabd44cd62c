import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js';

/** What a tool of a test's MCP server can do besides answering. */
export interface ToolContext {
  /** Aborts when the caller cancels the call. */
  signal: AbortSignal;
  /** Tell the caller that the call continues. */
  progress(done: number, message?: string): Promise<void>;
}

/** A tool as a test scripts it: what the server lists, and what a call does. */
export type ScriptedTool = Partial<Omit<Tool, 'name'>> & {
  name: string;
  call(input: Record<string, unknown>, context: ToolContext): CallToolResult | Promise<CallToolResult>;
};

/** A call that has reached the server. */
export interface ReceivedCall {
  tool: string;
  input: Record<string, unknown>;
  /** The effect key in its `_meta`, and its header `Idempotency-Key`. */
  key: unknown;
  header: string | string[] | undefined;
  /** Set when the caller has canceled it. */
  canceled: boolean;
}

/** A result that is one text. */
export const says = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });

/** A tool that answers with one text. */
export const textTool = (name: string, text: string): ScriptedTool => ({ name, call: () => says(text) });

/** A tool whose calls wait until the test lets them go, or until they are canceled. */
export function heldTool(name: string, text = 'done'): ScriptedTool & { release(): void } {
  let open: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    name,
    release: () => open(),
    call: async (_input, { signal }) => {
      await Promise.race([
        released,
        new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true })),
      ]);
      return says(text);
    },
  };
}
