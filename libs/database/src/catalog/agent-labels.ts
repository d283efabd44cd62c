import type { AgentDefinition, AgentLabels, EndedNext } from '@baton/a2a';

/** The columns of an agent's labels. */
export interface LabelsRow {
  /** Null: no version has had the label `next`. */
  newest: number | null;
  nextVersion: number | null;
  nextShare: number | null;
  nextFailures: number | null;
  nextSince: Date | null;
  nextEnded: EndedNext | null;
  /** Unset: it was not selected. Null: there is no such version. */
  nextDefinition?: AgentDefinition | null;
}

/** SQL of the labels of an agent. @param agents name or alias of the table */
export const labelColumns = (agents: string): string =>
  `${agents}.newest_version AS newest, ${agents}.next_version AS "nextVersion", ${agents}.next_share AS "nextShare",
  ${agents}.next_failures AS "nextFailures", ${agents}.next_since AS "nextSince", ${agents}.next_ended AS "nextEnded"`;

/** Besides: SQL of the definition of `next`. */
export const nextDefinition = (agents: string): string => `(SELECT v.definition FROM agent_versions v
    WHERE v.tenant_id = ${agents}.tenant_id AND v.agent_id = ${agents}.id AND v.version = ${agents}.next_version
      AND v.erased_at IS NULL) AS "nextDefinition"`;

/** The member `labels` of an agent. @param version the stable version */
export function labelsOf(version: number, row: LabelsRow): { labels?: AgentLabels } {
  const {
    newest,
    nextVersion,
    nextShare,
    nextFailures,
    nextSince,
    nextEnded,
    nextDefinition: definition,
  } = row;
  if (newest === null) return {};
  const labels: AgentLabels = { newest: Math.max(newest, version) };
  if (nextVersion !== null && nextShare !== null && nextFailures !== null && nextSince !== null) {
    const next = {
      version: nextVersion,
      share: nextShare,
      failures: nextFailures,
      since: new Date(nextSince),
    };
    labels.next = definition ? { ...next, definition } : next;
  }
  if (nextEnded) labels.ended = nextEnded;
  return { labels };
}
