import { Socket } from 'node:net';

// A thread of an agent's process. The worker holds the other end of this pipe and writes nothing. The pipe closes when
// the worker ends, also after kill -9. Then this thread ends the agent, even if the agent's code blocks its own thread.
const LIFELINE = 5;

new Socket({ fd: LIFELINE, readable: true, writable: false })
  .resume()
  .on('error', endGroup)
  .on('close', endGroup);

/** Kills the process group: the process leads it, and the agent's children are in it. */
function endGroup(): void {
  process.kill(-process.pid, 'SIGKILL');
}
