import type { FastifyInstance } from 'fastify';
import type { Traffic } from './traffic.js';

/** During a shutdown, what still comes in over connections that are open is sent elsewhere. */
export function refuseWhileDraining(instance: FastifyInstance, traffic: Traffic): void {
  instance.addHook('onRequest', (_request, reply, done) => {
    if (!traffic.draining) {
      done();
      return;
    }
    const message = 'this server is shutting down: send the request again';
    reply
      .status(503)
      .headers({ connection: 'close', 'retry-after': '1' })
      .send({ error: { code: 503, status: 'SERVICE_UNAVAILABLE', message } });
  });
}
