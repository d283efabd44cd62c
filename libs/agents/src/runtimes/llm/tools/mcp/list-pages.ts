import { McpFailure, unreadable } from './mcp-failure.js';
import type { ToolList } from './tool-list.js';

/** A server may give a next page for ever. */
const MAX_PAGES = 100;
/** Time for all pages but the last one. */
const MAX_MS = 60_000;

/**
 * Reads the pages of a list of tools.
 * @param ask sends `tools/list` with these parameters
 */
export async function listPages(
  list: ToolList,
  ask: (params: { cursor?: string }) => Promise<unknown>,
): Promise<void> {
  const seen = new Set<unknown>();
  let cursor: string | undefined;
  const began = performance.now();
  for (let page = 0; page < MAX_PAGES && !list.isFull; page++) {
    if (page > 0 && performance.now() - began > MAX_MS) throw tooSlow(page);
    const listed = await ask(cursor === undefined ? {} : { cursor });
    const { tools, nextCursor } = (listed ?? {}) as { tools?: unknown; nextCursor?: unknown };
    if (!Array.isArray(tools)) throw notAList(listed);
    list.add(tools);
    // Some servers send an empty cursor or null after the last page, some the same cursor again and again.
    if (typeof nextCursor !== 'string' || nextCursor === '' || seen.has(nextCursor)) return;
    list.noteMore();
    seen.add(nextCursor);
    cursor = nextCursor;
  }
}

const tooSlow = (pages: number): McpFailure =>
  new McpFailure(
    'silent',
    `its list of tools does not end: ${pages} pages have taken more than ${MAX_MS / 1000} s`,
    {
      remedy: 'Look at tools/list of the server: it may give larger pages, or none after the last one',
    },
  );

function notAList(listed: unknown): McpFailure {
  const { details } = unreadable(JSON.stringify(listed));
  return new McpFailure('unreadable', 'its answer to tools/list has no list of tools', details);
}
