import type { FastifyReply } from 'fastify';

// One for all: an abort without a reason makes a DOMException with a stack, once a request.
export const CALLER_GONE = new Error('nobody waits for this answer any more');

/** Aborted when the caller is gone. That ends our waiting, never a run. */
export function abortedWhenGone(reply: FastifyReply): AbortController {
  const caller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) caller.abort(CALLER_GONE);
  });
  return caller;
}
