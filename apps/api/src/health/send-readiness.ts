import type { FastifyReply } from 'fastify';

/** Answers with 200, or with 503 and `Retry-After`. */
export async function sendReadiness(reply: FastifyReply, ready: boolean, body: object): Promise<void> {
  if (!ready) reply.header('retry-after', '2');
  await reply
    .status(ready ? 200 : 503)
    .header('cache-control', 'no-store')
    .send(body);
}
