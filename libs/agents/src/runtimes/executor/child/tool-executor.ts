import { type Part, Role } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from '@a2a-js/sdk/server';
import type { FunctionCall } from '../tool-call-request.js';
import type { LoadedTool } from './load-tools.js';
import { jsonOf } from './step-values.js';
import type { FunctionToolCall } from './function-tool.js';
import type { TenantSecrets, Verified } from './steps.js';

/** Executes one function in a turn. The request comes from `callRequest`. A message returns the result as JSON. */
export class ToolExecutor implements AgentExecutor {
  private readonly canceled = new AbortController();

  constructor(private readonly tools: readonly LoadedTool[]) {}

  async execute(request: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { taskId, contextId, userMessage, context } = request;
    // oxlint-disable-next-line no-restricted-properties -- the worker wrote it
    const { tool: name, input, key, verifies } = JSON.parse(textOf(userMessage.parts[0])) as FunctionCall;
    const tool = this.tools.find(({ declared }) => declared.name === name);
    if (!tool) throw new Error(`there is no function "${name}" any more`);
    const { signal } = this.canceled;
    const { secret } = context as typeof context & TenantSecrets;
    const call = { key, taskId, contextId, tenant: context.tenant ?? '', signal, secret };
    const given = await tool.read(input);
    const result = verifies ? await found(tool, call, given) : await tool.execute(given, call);
    const content: Part['content'] = { $case: 'text', value: jsonOf(result ?? null, 'the result') ?? 'null' };
    bus.publish(
      AgentEvent.message({
        messageId: key,
        taskId,
        contextId,
        role: Role.ROLE_AGENT,
        parts: [{ content, filename: '', mediaType: '', metadata: undefined }],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      }),
    );
  }

  cancelTask(): Promise<void> {
    this.canceled.abort();
    return Promise.resolve();
  }
}

async function found(
  { verify, declared }: LoadedTool,
  call: FunctionToolCall,
  input: unknown,
): Promise<Verified> {
  const found = (await verify?.(call, input)) as Verified | null | undefined;
  if (typeof found?.done === 'boolean') return found;
  throw new TypeError(`verify of "${declared.name}" must return {done: true, result} or {done: false}`);
}

const textOf = (part: Part | undefined): string =>
  part?.content?.$case === 'text' ? part.content.value : '';
