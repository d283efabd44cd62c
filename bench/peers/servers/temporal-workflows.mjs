// Workflows of Temporal: what the worker runs in its sandbox.
import { condition, defineSignal, proxyActivities, setHandler, sleep as pause } from '@temporalio/workflow';
import { WorkflowStream } from '@temporalio/workflow-streams/workflow';

const activities = proxyActivities({ startToCloseTimeout: '1 minute' });
// As in its sample of heartbeats: an activity whose worker is gone is tried again after three seconds, not after a minute.
const beating = proxyActivities({ startToCloseTimeout: '60s', heartbeatTimeout: '3s' });

export const send = async (text) => text;

export async function steps(text) {
  const one = await activities.step(text, 1);
  const two = await activities.step(one, 2);
  return activities.step(two, 3);
}

export async function stream(chunks) {
  new WorkflowStream();
  let read = false;
  setHandler(defineSignal('read'), () => void (read = true));
  await activities.chunks(chunks);
  // A workflow that has ended hands nothing out.
  await condition(() => read, '1 minute');
}

export const sleep = (ms) => pause(ms);

export async function ticker(url) {
  for (let n = 0; ; n++) await beating.tick(url, n);
}
