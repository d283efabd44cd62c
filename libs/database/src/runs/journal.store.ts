import { isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import type { RunKey } from '../dispatch/run-key.js';
import { appendRecorded } from './append-recorded.js';
import { hasLiveRun, readEffects, tasksWithJournal } from './effect-entries.js';
import { type ModelCallRecord, readModelCalls } from './model-call-entries.js';
import { READABLE_ENTRIES } from './readable-entries.js';
import { restartJournal } from './restart-journal.js';
import { RunStore } from './run.store.js';
import { readSteps, type StepRecord } from './step-entries.js';
import {
  type OpenCallRecord,
  readOpenCalls,
  readToolCalls,
  type ToolCallRecord,
} from './tool-call-entries.js';

interface JournalRow {
  run_id: string;
  position: number;
  value: unknown;
}

/** $1 tenant $2 task */
const READ_JOURNAL: Statement = {
  name: 'journal-read',
  text: 'SELECT run_id, position, value FROM turn_journal WHERE tenant_id = $1 AND task_id = $2 ORDER BY position',
};

/** $1 tenant $2 task $3 position */
const READ_ENTRY: Statement = {
  name: 'journal-read-entry',
  text: 'SELECT run_id, position, value FROM turn_journal WHERE tenant_id = $1 AND task_id = $2 AND position = $3',
};

/** The answer of a model with that number, from 1: $1 tenant $2 task $3 number */
const FIND_MODEL_STEP: Statement = {
  name: 'journal-find-model-step',
  text: `SELECT position FROM ${READABLE_ENTRIES} WHERE value->>'kind' = 'step' ORDER BY position OFFSET $3::int - 1 LIMIT 1`,
};

/** One value of a task's journal. */
export interface JournalRecord {
  /** The run that wrote it. */
  runId: string;
  /** From 1, over all turns of the task. Without holes between those that are left. */
  position: number;
  /** Any JSON value. */
  value: unknown;
}

/** The journals of runtimes: see `TurnJournal` of libs/agents. */
@Injectable()
export class JournalStore {
  constructor(
    private readonly database: Database,
    private readonly runs: RunStore,
  ) {}

  /** The whole journal of a task, oldest first; empty if there is none, or if the task is another tenant's. */
  async read(tenantId: string, taskId: string): Promise<JournalRecord[]> {
    if (!isUuid(taskId)) return [];
    const rows = await this.database.tenantQuery<JournalRow>(tenantId, READ_JOURNAL, [tenantId, taskId]);
    return rows.map(({ run_id: runId, position, value }) => ({ runId, position, value }));
  }

  /** One entry of a task's journal. Undefined: there is none. */
  async entry(tenantId: string, taskId: string, position: number): Promise<JournalRecord | undefined> {
    if (!isUuid(taskId)) return undefined;
    const values = [tenantId, taskId, position];
    const [row] = await this.database.tenantQuery<JournalRow>(tenantId, READ_ENTRY, values);
    return row && { runId: row.run_id, position: row.position, value: row.value };
  }

  /** The entry of an llm agent's journal with the answer of its model that has that number, from 1. Undefined: there is none. */
  async modelStep(tenantId: string, taskId: string, number: number): Promise<JournalRecord | undefined> {
    if (!isUuid(taskId)) return undefined;
    const values = [tenantId, taskId, number];
    const [row] = await this.database.tenantQuery<{ position: number }>(tenantId, FIND_MODEL_STEP, values);
    return row && this.entry(tenantId, taskId, row.position);
  }

  /** The durable steps of a task in the order in which they began; empty if it has none. */
  async steps(tenantId: string, taskId: string): Promise<StepRecord[]> {
    if (!isUuid(taskId)) return [];
    return readSteps(this.database, tenantId, taskId);
  }

  /** The effects of a task: see `readEffects`. */
  async effects(tenantId: string, taskId: string): ReturnType<typeof readEffects> {
    if (!isUuid(taskId)) return { effects: [], begun: new Map() };
    return readEffects(this.database, tenantId, taskId);
  }

  /** Whether a worker executes the task now. */
  async hasLiveRun(tenantId: string, taskId: string): Promise<boolean> {
    return hasLiveRun(this.database, tenantId, taskId);
  }

  /** Which of the tasks have a journal. */
  async tasksWithJournal(tenantId: string, taskIds: readonly string[]): Promise<ReadonlySet<string>> {
    return tasksWithJournal(this.database, tenantId, taskIds);
  }

  /** The newest `limit` model calls for a task, the oldest of them first; empty if there are none. */
  async modelCalls(tenantId: string, taskId: string, limit: number): Promise<ModelCallRecord[]> {
    if (!isUuid(taskId)) return [];
    return readModelCalls(this.database, tenantId, taskId, limit);
  }

  /** The newest `limit` tool calls for a task, the oldest of them first: see `readToolCalls`. */
  async toolCalls(tenantId: string, taskId: string, limit: number): Promise<ToolCallRecord[]> {
    if (!isUuid(taskId)) return [];
    return readToolCalls(this.database, tenantId, taskId, limit);
  }

  /** The tool calls that the newest answer of a model asks for and that have no result: see `readOpenCalls`. */
  async openCalls(tenantId: string, taskId: string): Promise<OpenCallRecord[]> {
    if (!isUuid(taskId)) return [];
    return readOpenCalls(this.database, tenantId, taskId);
  }

  /**
   * Write the entry at `position`, and the record of its model call, if there is one. Idempotent.
   * @returns false if the attempt is not current or the task has ended: nothing was written then
   */
  async append(run: RunKey, position: number, value: unknown, record?: string): Promise<boolean> {
    if (record === undefined) return this.runs.appendEntry(run, position, value);
    return appendRecorded(this.database, run, position, value, record);
  }

  /** Writes an entry in place of all entries before it, except the first `kept` ones: it deletes the others. */
  async restart(run: RunKey, position: number, value: unknown, kept = 0): Promise<boolean> {
    return restartJournal(this.database, run, position, value, kept);
  }
}
