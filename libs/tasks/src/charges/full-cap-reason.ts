import { formatMicros } from '@baton/config';
import { type CapKind, EACH, type FullCap } from '@baton/database';

/** Whose cap it is, in words. */
const WORDS: Readonly<Record<CapKind, string>> = {
  tenant: 'this tenant',
  agent: 'agent',
  caller: 'caller',
  token: 'token',
  schedule: 'schedule',
  task: 'task',
};

/** Names a cap: `The spending cap of the agent "helper" for a day`. */
export function nameOfCap({
  kind,
  subject,
  name,
  period,
}: Pick<FullCap, 'kind' | 'subject' | 'name' | 'period'>): string {
  const of =
    kind === 'tenant'
      ? WORDS[kind]
      : subject === EACH
        ? `each ${WORDS[kind]}`
        : `the ${WORDS[kind]} "${name}"`;
  return `The spending cap of ${of}${period === 'life' ? '' : ` for a ${period}`}`;
}

/** Why a call or a task was refused: the cap, what is used, and what to do. @param micros what it may cost */
export function fullCapReason(
  cap: FullCap,
  micros: number,
  currency: string,
  what: 'call' | 'task' = 'call',
): string {
  const { micros: limit, usedMicros, reservedMicros, allowedMicros, periodStart, periodEnd, setBy } = cap;
  const money = (amount: number): string => `${formatMicros(amount)} ${currency}`;
  const since = periodStart === null ? '' : ` since ${periodStart} (UTC)`;
  const reserved =
    reservedMicros > 0 ? `, ${money(reservedMicros)} are reserved for calls that are being made` : '';
  const allowed =
    allowedMicros > 0
      ? `, and of ${money(allowedMicros)} more that were approved for this task too little is left`
      : '';
  const later = periodEnd === null ? '' : `Try again from ${periodEnd} (UTC), or ask`;
  const who = setBy === 'operator' ? 'the operator' : 'an administrator of the tenant';
  return (
    `${nameOfCap(cap)}, which is ${money(limit)}, has no room for another ${what}: ${money(usedMicros)} are used${since}${reserved}${allowed}, ` +
    `and ${what === 'call' ? 'the call may cost' : 'a task costs'} ${money(micros)}. ${later || 'Ask'} ${who} for a higher cap.`
  );
}
