import { endsTurn, isTerminal } from '../dialects.js';
import type { Observations, StoredTask, TaskRecord } from '../observations.js';
import { checkAnswers } from './check-answers.js';
import { checkCode } from './check-code.js';
import { checkContent } from './check-content.js';
import { checkLog } from './check-log.js';
import { checkMcp } from './check-mcp.js';
import { checkSchedule } from './check-schedules.js';
import { checkScribe } from './check-scribe.js';
import { checkVersions } from './check-versions.js';
import { checkViewer } from './check-viewer.js';
import type { Finding } from './finding.js';

export { type Defect, DEFECTS, type Finding } from './finding.js';

/** Everything that is wrong with what was observed. */
export function* check(observations: Observations): Generator<Finding> {
  const { records, stored } = observations;
  const byId = new Map(stored.map((task) => [task.taskId, task]));
  for (const record of records) yield* checkRecord(record, byId);
  const driven = new Set(records.map(({ taskId }) => taskId));
  for (const task of stored) {
    yield* checkLog(task);
    yield* checkScribe(task);
    yield* checkEnd(task, driven.has(task.taskId));
    yield* checkMarks(task, observations.marks);
  }
  yield* checkTwins(stored);
  for (const { id: task, agent, ended } of observations.attacks) {
    if (!ended) yield { defect: 'stuck', task, detail: `an attack with the agent ${agent} does not end` };
  }
  for (const schedule of observations.schedules) yield* checkSchedule(schedule);
  yield* checkMcp(observations.mcp);
  yield* checkVersions(observations.versions);
  yield* checkCode(observations.code);
  yield* checkAnswers(observations);
}

function* checkRecord(record: TaskRecord, byId: ReadonlyMap<string, StoredTask>): Generator<Finding> {
  const { name: task, taskId } = record;
  const last = record.answeredStates.at(-1) ?? 'no answer';
  if (!record.finished) yield { defect: 'stuck', task, detail: `its caller gave up; last state: ${last}` };
  if (taskId === undefined) return;
  const stored = byId.get(taskId);
  if (!stored) {
    yield { defect: 'lost', task, detail: `the task ${taskId} was accepted, and is not there` };
    return;
  }
  if (stored.tenant !== record.tenant) yield { defect: 'crossTenant', task, detail: `is ${stored.tenant}'s` };
  yield* checkContent(record, stored);
  for (const viewer of record.viewers) yield* checkViewer(record, viewer, stored);
}

/** A task ends; one whose answer was lost has no client that answers its question, and may wait for it. */
function* checkEnd({ taskId: task, snapshot }: StoredTask, isDriven: boolean): Generator<Finding> {
  const isOver = isDriven ? isTerminal : endsTurn;
  if (!isOver(snapshot.state)) yield { defect: 'stuck', task, detail: `it is ${snapshot.state}` };
}

/** Nothing of a tenant's log carries what all messages of another tenant carry. */
function* checkMarks(
  { taskId: task, tenant, log }: StoredTask,
  marks: Observations['marks'],
): Generator<Finding> {
  for (const { sequence, raw } of log) {
    const foreign = raw.match(/mark-[\da-f]{12}/g)?.find((mark) => mark !== marks[tenant]);
    if (foreign !== undefined) {
      yield { defect: 'crossTenant', task, detail: `event ${sequence} of ${tenant} carries ${foreign}` };
    }
  }
}

/** A message that was sent again because its answer was lost is still one task. */
function* checkTwins(stored: readonly StoredTask[]): Generator<Finding> {
  const byMessage = new Map<string, string>();
  for (const { taskId, snapshot } of stored) {
    const [first] = snapshot.history.filter(({ role }) => role === 'user');
    if (!first) continue;
    const twin = byMessage.get(first.messageId);
    const detail = `the message ${first.messageId} made this task and ${twin}`;
    if (twin !== undefined) yield { defect: 'doubled', task: taskId, detail };
    byMessage.set(first.messageId, taskId);
  }
}
