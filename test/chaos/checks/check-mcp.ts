import type { McpOutcome, McpRecord, McpTaskRecord } from '../observations.js';
import { checkRepeats } from './check-repeats.js';
import type { Finding } from './finding.js';

/** Each call over MCP is one task, each task is of a call, and the tool server has got no call beside theirs. */
export function* checkMcp({ records, tasks, received }: McpOutcome): Generator<Finding> {
  const numbers = new Set(records.map(({ number }) => number));
  for (const { taskId: task, number } of tasks) {
    if (number === undefined || !numbers.has(number))
      yield { defect: 'unexpected', task, detail: 'a task of MCP that no call has begun' };
  }
  for (const record of records) {
    yield* checkCall(
      record,
      tasks.filter(({ number }) => number === record.number),
    );
  }
  const known = records.reduce((sum, { calls }) => sum + calls.length, 0);
  if (known !== received) {
    const detail = `it has got ${received} calls, ${known} of them of calls over MCP`;
    yield { defect: 'unexpected', task: 'tool server of MCP', detail };
  }
}

/** A call ends as its task over A2A. Its tool was called once, and again only where that is right. */
function* checkCall(record: McpRecord, tasks: readonly McpTaskRecord[]): Generator<Finding> {
  const { number, kind, server, client, taskId, answered, fault, calls, questions } = record;
  const task = `MCP call ${kind} ${number} (${client}, server ${server})`;
  const keys = calls.map(({ key }) => key);
  if (fault !== undefined) yield { defect: 'unexpected', task, detail: fault };
  else if (!answered) yield { defect: 'stuck', task, detail: 'its caller gave up' };
  if (tasks.length > 1)
    yield {
      defect: 'doubled',
      task,
      detail: `it made the tasks ${tasks.map((each) => each.taskId).join(', ')}`,
    };
  // Without an answer it was accepted or not. A call of its tool needs a task, and so does an id in an answer.
  const stored = taskId === undefined ? tasks[0] : tasks.find((each) => each.taskId === taskId);
  if (!stored && (taskId !== undefined || answered))
    yield { defect: 'lost', task, detail: `its task ${taskId ?? ''} is in no list` };
  if (!stored && keys.length > 0)
    yield { defect: 'unexpected', task, detail: 'its tool was called, and it has no task' };
  if (answered) yield* checkEnd(task, record, answered, stored);
  if (stored?.state === 'completed') {
    if (keys.length === 0) yield { defect: 'lost', task, detail: 'its tool was not called' };
    const isConfirmed = stored.effects.some(({ key, outcome }) => outcome === 'confirmed' && key === keys[0]);
    if (keys.length > 0 && !isConfirmed)
      yield { defect: 'wrong', task, detail: `the ledger does not have its call ${keys[0]} as confirmed` };
  }
  for (const unknown of questions) {
    if (kind === 'again')
      yield { defect: 'wrong', task, detail: 'it asks a person, and its tool may be called again' };
    else if (unknown.length === 0)
      yield { defect: 'wrong', task, detail: 'it asks a person, and no effect of it is unknown' };
  }
  // It comes again for one of two reasons: its tool may be repeated, and another attempt has done so before the ledger had an end of it; or
  // a person has approved its unknown outcome, once for each approval.
  yield* checkRepeats(task, 'its tool', keys, (key) =>
    kind === 'again' ? (stored?.retries ?? 0) : questions.filter((unknown) => unknown.includes(key)).length,
  );
  for (const { key, at } of calls) {
    const entries = stored?.effects.filter((effect) => effect.key === key) ?? [];
    const [entry] = entries;
    if (entries.length > 1)
      yield { defect: 'doubled', task, detail: `the ledger has its call ${key} ${entries.length} times` };
    if (entry?.endedAt !== undefined && at > entry.endedAt) {
      const detail = `its tool was called ${at - entry.endedAt} ms after the call had ended in the ledger`;
      yield { defect: 'doubled', task, detail };
    }
  }
}

function* checkEnd(
  task: string,
  { number }: McpRecord,
  answered: NonNullable<McpRecord['answered']>,
  stored: McpTaskRecord | undefined,
): Generator<Finding> {
  if (stored && answered.state !== stored.state)
    yield { defect: 'wrong', task, detail: `it is ${answered.state} over MCP, and ${stored.state} over A2A` };
  if (answered.state !== 'completed') {
    yield { defect: 'wrong', task, detail: `it is ${answered.state}: ${answered.text.slice(0, 200)}` };
    return;
  }
  const expected = `done answer ${number}`;
  for (const { text } of stored ? [answered, stored] : [answered]) {
    if (text !== expected)
      yield { defect: 'wrong', task, detail: `${JSON.stringify(text)} is not ${expected}` };
  }
}
