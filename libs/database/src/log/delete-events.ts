/**
 * SQL that deletes a part of logs.
 * @param parts what `s` is, with columns tenant_id, task_id, after and upto: the last event before the part, and the last of it
 */
export const deleteEvents = (parts: string): string => `DELETE FROM task_events e USING ${parts}
  WHERE e.tenant_id = s.tenant_id AND e.task_id = s.task_id AND e.sequence > s.after AND e.sequence <= s.upto`;
