/**
 * A2A 1.0 over JSON-RPC. The canonical model is this family's own, so little is bridged:
 * - methods are PascalCase; fields may come in camelCase or snake_case (ProtoJSON), and leave in camelCase;
 * - parts are written in the member form (`{text}`, `{raw}`, `{url}`, `{data}`); `kind` and `type` are read;
 * - ProtoJSON leaves defaults out, but a ListTasks answer always has all four of its members (§3.1.4);
 * - a part whose data is null can't be told from one without content and is refused.
 */
import { SendMessageResponse } from '@a2a-js/sdk';
import { encodeCard } from '../../cards/encode-card.js';
import { StreamResponse, Task } from '../../model.js';
import { defineCodec, type Family, type WriteResults } from '../define-codec.js';
import { METHODS } from './decode.js';

const RESULTS: WriteResults = {
  sendMessage: (result) => SendMessageResponse.toJSON({ payload: result }),
  getTask: (task) => Task.toJSON(task),
  listTasks: ({ tasks, ...page }) => ({ tasks: tasks.map((task) => Task.toJSON(task)), ...page }),
  cancelTask: (task) => Task.toJSON(task),
  pushNotificationConfig: (never) => never,
  getExtendedAgentCard: (card) => encodeCard(card, '1.0'),
};

export const V1_0_FAMILY: Family = {
  version: '1.0',
  methods: METHODS,
  results: RESULTS,
  encodeItem: ({ payload }) => StreamResponse.toJSON({ payload }),
};

export const V1_0_CODEC = defineCodec(V1_0_FAMILY);
