import type { Frame } from './raw-caller.js';

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
