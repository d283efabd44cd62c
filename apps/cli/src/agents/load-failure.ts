import type { TenantSchemas } from '@baton/contract';
import { oneLine } from '../output.js';

export type LoadFailure = TenantSchemas['LoadFailure'];

/** A line for people: what, where and why. */
export const failureText = ({ agent, file, line, reason }: LoadFailure): string =>
  `Agent ${agent ?? '-'} could not be loaded: ${placeAndReason({ file, line, reason })}`;

/** The place of a fault and its reason: `index.mjs:3: Unexpected end of input`. */
export const placeAndReason = ({ file, line, reason }: Omit<LoadFailure, 'agent'>): string =>
  `${file}${line === null ? '' : `:${line}`}: ${oneLine(reason.replace(/^could not be loaded: /, ''), 300)}`;
