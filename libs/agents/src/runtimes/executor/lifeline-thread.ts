import { Socket } from 'node:net';

// A thread of an agent's process. The worker holds the other end of this pipe and writes nothing: it closes when the
// worker ends, also by kill -9, and nothing may be left behind then, whatever the agent's code does meanwhile.
const LIFELINE = 5;

new Socket({ fd: LIFELINE, readable: true, writable: false })
  .resume()
  .on('error', endGroup)
  .on('close', endGroup);

/** The process leads a group: what the agent has started ends with it. */
function endGroup(): void {
  process.kill(-process.pid, 'SIGKILL');
}
