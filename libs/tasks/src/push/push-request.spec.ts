import { type EventPayload, type TaskEvent, TaskState } from '@baton/a2a';
import type { ClaimedPush, WebhookTarget } from '@baton/database';
import {
  artifactEvent,
  sampleArtifact,
  sampleTask,
  statusEvent,
} from '../../../../test/support/a2a/samples.js';
import { pushRequests } from './push-request.js';

const { TASK_STATE_WORKING: WORKING, TASK_STATE_COMPLETED: COMPLETED } = TaskState;
const publicUrl = 'https://baton.example';

const pushTo = (members: Partial<ClaimedPush>) =>
  ({ taskId: 'task-1', protocol: '1.0', mode: 'each', states: null, traces: [], ...members }) as ClaimedPush;
const log = (...payloads: EventPayload[]): TaskEvent[] =>
  payloads.map((payload, i) => ({ sequence: i + 2, attempt: 1, payload }));
const chunk = artifactEvent(sampleArtifact());
const stateIn = (body: string): unknown => (JSON.parse(body) as { status: { state: string } }).status.state;

describe('the requests of a push config', () => {
  const working = log(statusEvent(WORKING), chunk, chunk);

  it.each([
    // The receiver gets the chunks with the task as of now, which has them.
    [
      'as of these events',
      4,
      [
        [2, 2, 'working'],
        [4, 4, 'working'],
      ],
    ],
    // A later event delivers the chunks.
    ['newer than these events', 5, [[2, 4, 'working']]],
  ])(
    'over 0.3 is a task for each status, and one for the rest if the task is %s',
    (_, sequence, expected) => {
      const status = { state: WORKING, message: undefined, timestamp: '2026-01-31T12:00:00.000Z' };
      const snapshot = { task: sampleTask({ status }), sequence };
      const requests = pushRequests(pushTo({ protocol: '0.3' }), working, { snapshot, publicUrl });
      expect(requests.map(({ sequence: at, through, body }) => [at, through, stateIn(body)])).toEqual(
        expected,
      );
    },
  );

  it('of a webhook is one for each change of state that it asks for', () => {
    const webhook = { webhookId: 'w', agentId: 'a', agentSlug: 'echo', stateBefore: null } as WebhookTarget;
    const events = log(statusEvent(WORKING), statusEvent(WORKING), chunk, statusEvent(COMPLETED));
    const sequencesFor = (states: TaskState[] | null, stateBefore: string | null) =>
      pushRequests(pushTo({ protocol: 'webhook', states }), events, {
        webhook: { ...webhook, stateBefore },
        publicUrl,
      }).map(({ sequence }) => sequence);
    expect(sequencesFor(null, null)).toEqual([2, 5]);
    expect(sequencesFor(null, 'TASK_STATE_WORKING')).toEqual([5]);
    expect(sequencesFor([COMPLETED], null)).toEqual([5]);
  });
});
