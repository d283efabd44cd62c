import { AUDIT_ACTIONS, type AuditQuery, auditJson, type AuditRecord, AuditStore } from '@baton/database';
import { Injectable } from '@nestjs/common';

const KNOWN: ReadonlySet<string> = new Set(
  Object.keys(AUDIT_ACTIONS).flatMap((action) => [action, action.slice(0, action.indexOf('.'))]),
);

/** The audit log for callers of the API. */
@Injectable()
export class AuditLog {
  constructor(private readonly store: AuditStore) {}

  /** Whether there is such an action, or the first word of one. */
  static knows(action: string): boolean {
    return KNOWN.has(action);
  }

  /**
   * At most `limit` records of a tenant, the latest first.
   * @returns `last`: the position of the next page, if there is one
   */
  async page(
    tenantId: string,
    query: Omit<AuditQuery, 'tenantId'>,
  ): Promise<{ records: ReturnType<typeof auditJson>[]; last: AuditRecord | undefined }> {
    const { limit } = query;
    const found = await this.store.list({ ...query, tenantId, limit: limit + 1 });
    const page = found.slice(0, limit);
    return { records: page.map(auditJson), last: found.length > limit ? page.at(-1) : undefined };
  }
}
