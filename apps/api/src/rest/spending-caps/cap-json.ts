import { parseFields } from '@baton/a2a';
import { formatMicros, MAX_AMOUNT, parseMicros } from '@baton/config';
import { CAP_KINDS, CAP_PERIODS, type CapSpec, ON_LIMIT, type SpendingCapUse } from '@baton/tasks';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';

const amount = z.string().refine((text) => (parseMicros(text) ?? 0) > 0, {
  error: `must be a text such as "2.50": above 0, at most ${MAX_AMOUNT}, with up to six decimals`,
});
const capKind = z.enum(CAP_KINDS).describe('What the cap bounds. `task`: a task with all tasks below it');
const period = z.enum(CAP_PERIODS).describe('UTC; a week begins on Monday. `life`: of a task tree');

const onLimit = z
  .enum(ON_LIMIT)
  .describe(
    'What happens to a task whose call has no room: it fails, or asks a person whether it may spend more',
  );

export const newCap = z.strictObject({
  of: capKind,
  subject: z
    .string()
    .default('')
    .describe(
      'Slug or id of the agent, name or id of the schedule, key of the caller, id of the token or of the first task; `*`: each of ' +
        'them has the amount for itself. Left out for the tenant',
    ),
  period,
  on_limit: onLimit.default('fail'),
  amount: amount.describe('In the currency of MODEL_PRICES, such as `2.50`'),
});
/** What an operator sets for a tenant. */
export const operatorCap = z.strictObject({ amount });

const money = z.string().describe('Such as `2.50`');
export const capAnswer = z
  .object({
    id: z.string(),
    of: capKind,
    subject: z.string().describe('`*`: each. Empty: the tenant'),
    period,
    amount: money,
    on_limit: onLimit,
    set_by: z.enum(['tenant', 'operator']).describe('Only the operator changes a cap of the operator'),
    period_start: z.string().nullable().describe('The first day of the present period. Null: it is a life'),
    used: money.describe('In the present period. Of `*`: by the one that has used most'),
    used_by: z.string().nullable().describe('Id or key of the one that has used this. Null: nothing is used'),
    allowed: money.describe(
      'What persons have let tasks spend beyond the cap in the present period. `used` has none of it',
    ),
    changed_by: z.string().describe('The key of the principal that has changed it last'),
    updated_at: timeSchema,
  })
  .meta({ id: 'SpendingCap' });
export const capList = z.object({
  currency: z.string().describe('Of all amounts'),
  caps: z.array(capAnswer),
});

/** Reads a cap. Throws `invalid-params` naming every wrong field. */
export function decodeCap(body: unknown): CapSpec {
  const { of: kind, amount: text, on_limit: onLimitOf, ...given } = parseFields(newCap, body, '', 'the body');
  return { kind, micros: parseMicros(text) ?? 0, onLimit: onLimitOf, ...given };
}

/** Reads the amount of an operator's cap, in millionths. */
export const decodeOperatorCap = (body: unknown): number =>
  parseMicros(parseFields(operatorCap, body, '', 'the body').amount) ?? 0;

export const encodeCap = (cap: SpendingCapUse): z.infer<typeof capAnswer> => ({
  id: cap.id,
  of: cap.kind,
  subject: cap.name,
  period: cap.period,
  amount: formatMicros(cap.micros),
  on_limit: cap.onLimit,
  set_by: cap.setBy,
  period_start: cap.periodStart,
  used: formatMicros(cap.usedMicros),
  used_by: cap.usedBy === '' ? null : cap.usedBy,
  allowed: formatMicros(cap.allowedMicros),
  changed_by: cap.changedBy,
  updated_at: cap.updatedAt.toISOString(),
});
