/**
 * A2A 0.3 (and 0.2.x, which has the same shapes) over JSON-RPC. Where it differs from the canonical model:
 * - methods are paths (`message/send`); there is no list of tasks;
 * - roles are `user`, `agent`; states are lower case with hyphens (`input-required`), unset is `unknown`;
 * - objects carry `kind`; parts are `{kind: "text" | "file" | "data"}`, a file is `{file: {bytes | uri}}`;
 * - text and data parts have neither file name nor media type: those of a 1.0 part are left out;
 * - `data` must be an object: other values travel as `{value}` with metadata `data_part_compat`;
 * - a status event carries `final`, true when the turn is over;
 * - `configuration.blocking: false` is `returnImmediately: true`; left out it blocks;
 * - a unary result and a frame are the bare object, without the 1.0 wrapper member;
 * - push authentication has a list of `schemes`, of which the first is kept.
 */
import { encodeCard } from '../../cards/encode-card.js';
import { defineCodec, type Family, type WriteResults } from '../define-codec.js';
import { METHODS } from './decode.js';
import { encodePayload } from './encode.js';

const RESULTS: WriteResults = {
  sendMessage: (result) => encodePayload(result),
  getTask: (value) => encodePayload({ $case: 'task', value }),
  listTasks: ({ tasks, ...page }) => ({
    tasks: tasks.map((value) => encodePayload({ $case: 'task', value })),
    ...page,
  }),
  cancelTask: (value) => encodePayload({ $case: 'task', value }),
  pushNotificationConfig: (never) => never,
  getExtendedAgentCard: (card) => encodeCard(card, '0.2'),
};

export const V0_3_FAMILY: Family = {
  version: '0.3',
  methods: METHODS,
  results: RESULTS,
  encodeItem: ({ payload }) => encodePayload(payload),
};

export const V0_3_CODEC = defineCodec(V0_3_FAMILY);
