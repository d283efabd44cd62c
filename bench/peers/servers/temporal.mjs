// Temporal as its documentation sets it up: an HTTP server that starts workflows, and a worker, both with the SDK for TypeScript. Chunks
// go out by Workflow Streams: an activity publishes each and waits until the server has it. Tells the parent process its port.
import { Context } from '@temporalio/activity';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { WorkflowStreamClient } from '@temporalio/workflow-streams/client';
import { randomUUID } from 'node:crypto';
import { listen } from './listen.mjs';
import { tick } from './tick.mjs';

const address = process.env.TEMPORAL_ADDRESS;
const taskQueue = 'bench';

const activities = {
  step: async (text, n) => `${text} ${n}`,
  chunks: async (chunks) => {
    const stream = WorkflowStreamClient.fromWithinActivity();
    const topic = stream.topic('chunks');
    for (let i = 0; i < chunks; i++) {
      topic.publish('chunk');
      await stream.flush();
    }
    topic.publish('end');
    await stream[Symbol.asyncDispose]();
  },
  tick: (url, n) => {
    Context.current().heartbeat();
    return tick(url, n);
  },
};

if (process.argv[2] === 'worker') {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const connection = await NativeConnection.connect({ address });
  const workflowBundle = { codePath: process.env.WORKFLOW_BUNDLE };
  const worker = await Worker.create({ connection, taskQueue, workflowBundle, activities });
  process.send({ port: 0 });
  process.once('disconnect', () => process.exit());
  await worker.run();
} else {
  const client = new Client({ connection: await Connection.connect({ address }) });
  const { workflow } = client;
  const options = (...args) => ({ args, taskQueue, workflowId: randomUUID() });
  await listen({
    send: (text) => workflow.execute('send', options(text)),
    steps: (text) => workflow.execute('steps', options(text)),
    sleep: async (ms) => void (await workflow.start('sleep', options(Number(ms)))),
    ticker: async (url) => void (await workflow.start('ticker', options(url))),
    stream: async (chunks, write) => {
      const handle = await workflow.start('stream', options(Number(chunks)));
      const topic = WorkflowStreamClient.create(client, handle.workflowId).topic('chunks');
      for await (const { data } of topic.subscribe(0)) {
        if (data === 'end') break;
        write(data);
      }
      await handle.signal('read');
    },
  });
}
