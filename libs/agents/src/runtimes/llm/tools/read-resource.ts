import type { Conversation } from '../conversation.js';
import { READ_RESOURCE } from '../result-output.js';
import type { AgentTool, ReadResource } from './tool-sources.js';

/**
 * The tool with which the model reads a resource that a result has linked. It reads no other one, and only at the server that has linked
 * it: the model cannot choose an address.
 */
export const readResourceTool = (conversation: Conversation, read: ReadResource): AgentTool => ({
  name: READ_RESOURCE,
  description: 'Reads a resource that the result of an earlier call names as [resource …].',
  inputSchema: {
    type: 'object',
    properties: {
      uri: { type: 'string', description: 'The URI of the resource, exactly as the result has it' },
    },
    required: ['uri'],
    additionalProperties: false,
  },
  needsApproval: false,
  isOwn: true,
  repeat: 'again',
  execute: async (input, { signal, report }) => {
    const { uri } = input as { uri: string };
    const link = conversation.linkTo(uri);
    if (!link)
      return { ok: false, content: `No result of this task names the resource "${uri.slice(0, 500)}".` };
    return read(link, { signal, ...(report && { report }) });
  },
});
