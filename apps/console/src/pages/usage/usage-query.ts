import { queryOptions } from '@tanstack/react-query';
import type { TenantSchemas } from '@baton/contract';
import { answerOf, api } from '../../api/client';
import type { Key } from './usage-view';

export type Usage = TenantSchemas['Usage'];

const DAY_MS = 86_400_000;

/** The time this many days ago. */
export const sinceOf = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();

/** The usage of the last days. */
export const usageQuery = (by: Key, days: number) =>
  queryOptions({
    queryKey: ['usage', by, days],
    queryFn: () => answerOf(api.GET('/v1/usage', { params: { query: { by, since: sinceOf(days) } } })),
  });

/** A sum of less than one has more digits: a model call may cost a hundredth of a cent. */
const LARGE = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SMALL = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 4 });

/** Writes sums of money. The operator can name the currency by any word. */
export const moneyIn =
  (currency: string): ((sum: number) => string) =>
  (sum) =>
    `${(Math.abs(sum) < 1 ? SMALL : LARGE).format(sum)} ${currency}`;
