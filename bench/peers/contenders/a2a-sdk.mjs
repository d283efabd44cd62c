import { startSdkServer } from '../../servers.mjs';

/** The official A2A SDK's server for JavaScript, with its tasks in Postgres. It has no durable steps and no recovery. */
export async function startA2aSdk() {
  const side = await startSdkServer('postgres');
  return {
    ...side,
    name: 'A2A SDK',
    setup: 'one process, Postgres',
    send: () => side.target.send(),
    stream: async (chunks) => Math.min(chunks, await side.target.stream(chunks)),
  };
}
