import { type Task, tokenUsage } from '@baton/a2a';
import type { TenantSchemas } from '@baton/contract';
import { formatTimeText, oneLine } from '../output.js';

// What `baton tasks show` prints of a task.

export const stepRow = ({
  name,
  kind,
  state,
  attempts,
  started_at: at,
  ended_at: end,
  error,
  unknown_outcome: outcome,
}: TenantSchemas['Step']): string[] => [
  name,
  kind,
  state,
  String(attempts),
  formatTimeText(at),
  formatTimeText(end),
  error ?? (outcome ? `outcome was unknown: ${outcome}` : ''),
];

export const callRow =
  (hasPrices: boolean) =>
  (call: TenantSchemas['ModelCall']): string[] => [
    formatTimeText(call.at),
    call.ms === null ? '-' : `${(call.ms / 1000).toFixed(1)} s`,
    call.model,
    `${call.input_tokens} → ${call.output_tokens}`,
    String(call.attempt),
    outcomeOf(call),
    ...(hasPrices ? [call.cost === null ? '-' : String(call.cost)] : []),
  ];

function outcomeOf(call: TenantSchemas['ModelCall']): string {
  const { error, finish, provider_finish: word, tools, tools_not_made: notMade } = call;
  if (error !== null) return `failed: ${error}`;
  if (call.is_summary) return 'summary of the conversation';
  const differs = word != null && word.toLowerCase().replaceAll('_', '-') !== finish;
  const reason = differs ? ` (${word})` : '';
  if (notMade) return `${finish ?? '-'}${reason}, not called: ${tools.join(', ')}`;
  return tools.length > 0 ? `calls ${tools.join(', ')}${reason}` : `${finish ?? '-'}${reason}`;
}

/** The fields of a task, by their titles. */
export function fieldsOf(found: TenantSchemas['Task'], task: Task, slug: string): [string, string][] {
  const { input, output } = tokenUsage(task.metadata);
  const {
    parent_id: parent,
    child_ids: children,
    approvals = [],
    runs: [run],
  } = found;
  return [
    ['task', found.task_id],
    ['agent', `${slug}${found.agent_version === null ? '' : ` (version ${found.agent_version})`}`],
    ['state', found.state ?? '-'],
    ...(found.parked
      ? [
          [
            'parked',
            `since ${formatTimeText(found.parked.since)}: ${oneLine(found.parked.problem)}`,
          ] satisfies [string, string],
        ]
      : []),
    ...(found.wakes_at == null
      ? []
      : [['asks until', formatTimeText(found.wakes_at)] satisfies [string, string]]),
    ...(found.reminders ?? []).map((reminder): [string, string] => [reminder.kind, reminderText(reminder)]),
    ['created', formatTimeText(found.created_at)],
    ['updated', formatTimeText(found.updated_at)],
    ...(run?.state === 'running' && run.worker_id !== null
      ? [['worker', run.worker_id] satisfies [string, string]]
      : []),
    ['context', found.context_id],
    ['owner', found.owner ?? '-'],
    ['events', String(found.events)],
    ['tokens', `${input} input, ${output} output`],
    ...(parent === null ? [] : [['parent', parent] satisfies [string, string]]),
    ...linksOf(found),
    ...(children.length === 0 ? [] : [['children', children.join(', ')] satisfies [string, string]]),
    ...approvals.map(({ call_id: call, tool }): [string, string] => [
      'approval',
      `${call}: ${tool} waits for a person`,
    ]),
    ...task.artifacts.flatMap(({ name, metadata }): [string, string][] => {
      const decision = metadata?.['baton.approval'] as ToolDecision | undefined;
      return decision ? [['approval', decisionText(name, decision)]] : [];
    }),
  ];
}

/** The tasks that a task continues or undoes, and those that continue or undo it. */
export const linksOf = (
  found: Pick<TenantSchemas['Task'], 'continues' | 'continued_as' | 'fork_of' | 'undoes' | 'undone_as'>,
): [string, string][] =>
  [
    ['continues', found.continues],
    ['continued as', found.continued_as],
    ['fork of', found.fork_of],
    ['undoes', found.undoes],
    ['undone as', found.undone_as],
  ].flatMap(([name, task]): [string, string][] => (name && task ? [[name, task]] : []));

/** What a person has decided on a tool call: metadata that Baton writes on its artifact. */
interface ToolDecision {
  approved: boolean;
  /** Null: the question expired without an answer. */
  by: string | null;
  at: string | null;
}

/** When webhooks are notified that a task waits, or were. */
function reminderText({
  due_at: due,
  sent_at: sent,
  webhooks,
}: NonNullable<TenantSchemas['Task']['reminders']>[number]): string {
  const next = due === null ? '' : `due ${formatTimeText(due)}`;
  if (sent === null) return next || 'given up: no receiver has taken it';
  if (webhooks === 0) return `due ${formatTimeText(sent)}: there was no webhook`;
  return `sent ${formatTimeText(sent)} to ${webhooks === 1 ? 'one webhook' : `${webhooks} webhooks`}${next && `, the others ${next}`}`;
}

const decisionText = (tool: string, { approved, by, at }: ToolDecision): string =>
  by === null
    ? `${tool}: no answer came in time`
    : `${tool} ${approved ? 'approved' : 'rejected'} by ${by}, ${formatTimeText(at)}`;
