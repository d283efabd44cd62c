import { type Agent, type RequestDetails, Role, type Task } from '@baton/a2a';
import { type JournalEntry, type Turn } from '../../agent-runtime.js';
import { NOTHING_SECRET } from '../../outbound/redactor.js';
import { turnRequest } from './turn-request.js';
import type { TurnRequest } from './protocol.js';
import { type TaskOrigin, withOrigin } from '../../task-origin.js';
import { TurnSteps } from './steps/turn-steps.js';

/** A task with what its agent has stored of it. */
export interface RecordedTask {
  tenantId: string;
  agent: Agent;
  /** With its whole history, without that of the tasks that it continues. */
  task: Task;
  /** Details of the request that began the task. */
  details: RequestDetails;
  /** The earlier tasks of the context. */
  earlierTasks: Task[];
  /** Where it comes from. Undefined: it continues no other task. */
  origin: TaskOrigin | undefined;
  /** Entries of its runtime. */
  entries: JournalEntry[];
}

/**
 * What the process of an agent in code would get for the present turn of a task, with all steps that are recorded. Writes nothing.
 * @returns undefined for a task without recorded steps: any code fits it
 */
export async function replayRequest(recorded: RecordedTask): Promise<TurnRequest | undefined> {
  const { tenantId, agent, task, details, earlierTasks, origin, entries } = recorded;
  const last = entries.at(-1);
  const message = task.history.findLast(({ role }) => role === Role.ROLE_USER);
  if (!last || !message) return undefined;
  const isFirst = task.history[0] === message;
  const turn = {
    tenantId,
    runId: last.runId,
    // Recorded steps are read from the second attempt on.
    attempt: 2,
    agent,
    task: origin ? withOrigin(task, origin) : task,
    message,
    details: isFirst ? details : { metadata: undefined, configuration: undefined },
    referenceTasks: [],
    earlierTasks: () => Promise.resolve(earlierTasks),
    journal: {
      read: () => Promise.resolve(entries),
      append: () => Promise.reject(new Error('a replay stores nothing')),
      noteRemoteCall: () => Promise.resolve(),
      noteCompensable: () => Promise.resolve(),
      restart: () => Promise.reject(new Error('a replay stores nothing')),
    },
    origin,
    log: {
      startedAt: 0,
      flush: () => Promise.resolve(0),
      keepArtifact: () => undefined,
      wakeIn: () => undefined,
    },
    secrets: {
      redactor: NOTHING_SECRET,
      get: nothing,
      accessToken: nothing,
      noteCall: () => Promise.resolve(false),
      refuseAccessToken: nothing,
      widerAccess: nothing,
      offerSignIn: nothing,
    },
    extensions: [],
  } satisfies Partial<Turn>;
  const { journal } = await TurnSteps.open(turn as unknown as Turn);
  // Code that has thrown is only replayed to undo its steps.
  return journal.recorded.length === 0 || journal.compensating ? undefined : turnRequest(journal);
}

const nothing = (): Promise<undefined> => Promise.resolve(undefined);
