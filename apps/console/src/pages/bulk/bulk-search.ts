/** Filters with which the page begins. They are in the URL: a list of tasks leads here. */
export interface BulkSearch {
  agent?: string;
  state?: string;
  error?: string;
}

const NAMES = ['agent', 'state', 'error'] as const;

/** Reads the filters of a URL. Other keys are left out. */
export function readBulkSearch(search: Record<string, unknown>): BulkSearch {
  const read: BulkSearch = {};
  for (const name of NAMES) {
    const value = search[name];
    if (typeof value === 'string' && value !== '') read[name] = value;
  }
  return read;
}
