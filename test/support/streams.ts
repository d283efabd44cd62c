import { setTimeout as delay } from 'node:timers/promises';
import type { Frame, RawCaller } from './raw-caller.js';

/** Between two tries to read a stream on. */
const RESUME_MS = 20;
const ENDED = /FAILED|CANCELED|REJECTED/;

/** Whether the frame ends the task as completed. */
export const completes = (frame: Frame | undefined): boolean =>
  frame?.data.result?.statusUpdate?.status.state === 'TASK_STATE_COMPLETED';

/** Whether the frames are those of one log without a hole, each once. */
export const increasing = (frames: Frame[]): boolean =>
  frames.every(({ id }, i) => i === 0 || id === frames[i - 1]!.id + 1);

/** The reply as a caller folds it: a chunk without `append` replaces what was there. */
export function textsOf(frames: Frame[]): string[] {
  let texts: string[] = [];
  for (const { data } of frames) {
    const update = data.result?.artifactUpdate;
    if (!update) continue;
    const chunk = update.artifact.parts.map((part: { text: string }) => part.text) as string[];
    texts = update.append ? [...texts, ...chunk] : chunk;
  }
  return texts;
}

/**
 * Send a message and read its stream until the task completes. A stream that breaks is resumed at its last frame. A message that
 * finds its API or Postgres busy is sent again, as the answer asks.
 * @param again where to resume it
 * @param frames gets every frame as it comes
 * @throws Error if the message is not accepted, or the task ends in another way
 */
export async function followToCompletion(
  caller: RawCaller,
  params: object,
  { again, frames = [], onFrame }: { again: () => string; frames?: Frame[]; onFrame: (frame: Frame) => void },
): Promise<Frame[]> {
  const take = async (stream: AsyncGenerator<Frame>): Promise<unknown> => {
    try {
      for await (const frame of stream) {
        frames.push(frame);
        onFrame(frame);
      }
      return undefined;
    } catch (error) {
      return error;
    }
  };
  const send = (): Promise<unknown> => take(caller.stream('SendStreamingMessage', params));
  let why = await send();
  while (!frames[0] && String(why).includes('"reason":"UNAVAILABLE"')) {
    await delay(RESUME_MS);
    why = await send();
  }
  if (!frames[0]) throw new Error('The message was not accepted.', { cause: why });
  const id = frames[0].data.result?.task.id as string;
  while (!completes(frames.at(-1))) {
    const { status } = frames.at(-1)!.data.result?.statusUpdate ?? {};
    if (ENDED.test(String(status?.state)))
      throw new Error(`Task ${id} ended with ${JSON.stringify(status)}.`);
    await delay(RESUME_MS);
    await take(caller.at(again()).stream('SubscribeToTask', { id }, frames.at(-1)!.id));
  }
  return frames;
}
