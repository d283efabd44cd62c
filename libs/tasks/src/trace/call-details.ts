import {
  askedIn,
  callDetail,
  type CallRecordDetail,
  callRecordDetail,
  type ModelCallDetail,
  type StepDetail,
  stepDetail,
  type ToolCallDetail,
} from '@baton/agents';
import { CallRecordStore, JournalStore } from '@baton/database';
import { Injectable } from '@nestjs/common';

/** What one model or tool call, or one durable step, was asked and has answered. */
@Injectable()
export class CallDetails {
  constructor(
    private readonly journals: JournalStore,
    private readonly records: CallRecordStore,
  ) {}

  /** The call or step of an entry of the journal. Undefined: there is no such entry, or it is neither. */
  async read(
    tenantId: string,
    taskId: string,
    position: number,
  ): Promise<ModelCallDetail | ToolCallDetail | StepDetail | undefined> {
    const entry = await this.journals.entry(tenantId, taskId, position);
    // The entry of a tool call has its result. The answer of the model has its input.
    const asked = askedIn(entry?.value);
    const answer = asked && (await this.journals.modelStep(tenantId, taskId, asked.step));
    return callDetail(entry?.value, answer?.value) ?? stepDetail(entry?.value);
  }

  /** What was recorded of the model call with that entry: see `CallRecorder` of libs/agents. Undefined: nothing. */
  async record(tenantId: string, taskId: string, position: number): Promise<CallRecordDetail | undefined> {
    return callRecordDetail(await this.records.read(tenantId, taskId, position));
  }
}
