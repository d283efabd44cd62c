import { isUuid, type Message, ProtocolError } from '@baton/a2a';
import {
  type Actor,
  type DeadLetter,
  DeadLetterStore,
  type LetterPage,
  type RunErrorRecord,
  RunStore,
} from '@baton/database';
import { Injectable } from '@nestjs/common';
import { DeadLetters, refusalOf } from '../dead-letters/dead-letters.js';
import { type OfTenant, TenantSettings } from './tenant-settings.js';

/** A dead letter with its message and its error. */
export interface ShownLetter extends OfTenant<DeadLetter> {
  /** Null if its task was deleted by retention. */
  message: Message | null;
  /** Null if the agent's code has thrown nothing. */
  error: RunErrorRecord | null;
}

/** The runs of all tenants that used up their attempts, for operators, who name only the run. */
@Injectable()
export class OperatorLetters {
  constructor(
    private readonly settings: TenantSettings,
    private readonly letters: DeadLetterStore,
    private readonly runs: RunStore,
    private readonly deadLetters: DeadLetters,
  ) {}

  /** One page, the latest first, of one tenant or of all. @throws ProtocolError `not-found` */
  async list(tenant: string | undefined, page: LetterPage): Promise<OfTenant<DeadLetter>[]> {
    if (tenant === undefined) return this.settings.named(await this.letters.listAll(page));
    const { id, slug } = await this.settings.find(tenant);
    const found = await this.letters.list(id, page);
    return found.map((letter) => ({ ...letter, tenant: slug }));
  }

  /** @throws ProtocolError `not-found` */
  async show(runId: string): Promise<ShownLetter> {
    const letter = await this.find(runId);
    const [stored, error, [named]] = await Promise.all([
      this.letters.readMessage(letter.tenantId, runId),
      this.runs.lastError(letter.tenantId, letter.taskId),
      this.settings.named([letter]),
    ]);
    return { ...letter, tenant: named?.tenant ?? '', message: stored?.message ?? null, error: error ?? null };
  }

  /** Send the message of a dead run again. @throws ProtocolError, as the redelivery by a tenant */
  async redeliver(runId: string, again: boolean, by: Actor): Promise<{ taskId: string; agentId: string }> {
    const { tenantId } = await this.find(runId);
    const redelivered = await this.deadLetters.redeliver(tenantId, runId, again, undefined, by);
    if (!redelivered.ok) throw refusalOf(redelivered);
    return { taskId: redelivered.taskId, agentId: redelivered.letter.agentId };
  }

  private async find(runId: string): Promise<DeadLetter> {
    const letter = isUuid(runId) ? await this.letters.findAnywhere(runId) : undefined;
    if (letter) return letter;
    throw new ProtocolError('not-found', 'There is no dead letter of this run');
  }
}
