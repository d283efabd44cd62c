import { timeQuery } from '../../openapi/query-pipe.js';

export const HOUR_MS = 60 * 60 * 1000;

/** The beginning of the hour (UTC) of this time. */
export const hourOf = (time: Date): Date => new Date(Math.floor(time.getTime() / HOUR_MS) * HOUR_MS);

/** The query parameter `until` of a report by hours. */
export const UNTIL = timeQuery('… and before the hour of this time. Left out: until now');
