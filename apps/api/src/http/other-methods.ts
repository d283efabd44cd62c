import type { FastifyInstance, HTTPMethods } from 'fastify';

const METHODS: readonly HTTPMethods[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * Answer the methods a path does not have: OPTIONS with what it has, any other with 405. Without this they
 * would be 404, which sends people looking for a typing error in the URL.
 */
export function refuseOtherMethods(
  instance: FastifyInstance,
  url: string,
  allowed: readonly HTTPMethods[],
): void {
  const allow = [...allowed, ...(allowed.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
  instance.options(url, (_request, reply) => reply.status(204).header('allow', allow).send());
  instance.route({
    url,
    method: METHODS.filter((method) => !allowed.includes(method)),
    handler: (request, reply) => {
      const message = `${request.method} is not allowed here: use ${allowed.join(' or ')}`;
      return reply
        .status(405)
        .header('allow', allow)
        .send({ error: { code: 405, status: 'METHOD_NOT_ALLOWED', message } });
    },
  });
}
