import type { FunctionTool } from '../runtimes/executor/child/function-tool.js';

/**
 * A tool of an llm agent, as the default export of a file in `tools/` of the agent's folder. The name of the file is the tool's name.
 *
 * @example
 * export default defineTool({
 *   description: 'Finds an order',
 *   inputSchema: z.object({ id: z.string() }),
 *   onUnknown: 'repeat',
 *   execute: ({ id }) => findOrder(id),
 * });
 */
export const defineTool = <Input = Record<string, unknown>>(tool: FunctionTool<Input>): FunctionTool<Input> =>
  tool;
