// A service of Restate as its documentation sets it up. The server calls it over HTTP/2. Tells the parent process its port.
import * as restate from '@restatedev/restate-sdk';
import { tick } from './tick.mjs';

// The SDK needs Node 22. That is all that Node 20 lacks.
Promise.withResolvers ??= function withResolvers() {
  const resolvers = {};
  resolvers.promise = new this((resolve, reject) => Object.assign(resolvers, { resolve, reject }));
  return resolvers;
};

const bench = restate.service({
  name: 'bench',
  handlers: {
    send: async (_, text) => text,
    steps: async (context, text) => {
      const one = await context.run('one', () => `${text} 1`);
      const two = await context.run('two', () => `${one} 2`);
      return context.run('three', () => `${two} 3`);
    },
    // It has no streams of output: each chunk is a durable step, and the caller gets all at the end.
    stream: async (context, chunks) => {
      for (let i = 0; i < Number(chunks); i++) await context.run(`chunk ${i}`, () => 'chunk');
    },
    sleep: async (context, ms) => context.sleep(Number(ms)),
    ticker: async (context, url) => {
      for (let n = 0; ; n++) await context.run(`tick ${n}`, () => tick(url, n));
    },
  },
});

const port = await restate.serve({ services: [bench], port: Number(process.env.PORT ?? 0) });
process.send({ port });
process.once('disconnect', () => process.exit());
