import { setImmediate as nextTurn } from 'node:timers/promises';
import { AnswerTurns } from './answer-turns.js';
import { GuardedAnswer, type Handler } from './guarded-answer.js';

/** A handler as that of `fetch`, which requests more after each part, or only on demand. */
class Reader implements Handler {
  readonly got: string[] = [];
  wantMore: () => void = () => undefined;

  constructor(private readonly wantsMore: boolean) {}

  onConnect(): void {
    this.got.push('connected');
  }

  onHeaders(_status: number, _headers: Buffer[], resume: () => void): boolean {
    this.wantMore = resume;
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.got.push(chunk.toString());
    return this.wantsMore;
  }

  onComplete(): void {
    this.got.push('complete');
  }

  onError(error: Error): void {
    this.got.push(error.message);
  }
}

describe('the error of an answer', () => {
  function begin(wantsMore: boolean) {
    const reader = new Reader(wantsMore);
    const answer = new GuardedAnswer(reader, 'peer.example', new AnswerTurns(), () => undefined);
    answer.onHeaders(200, [], () => undefined, 'OK');
    return { answer, reader };
  }
  const broken = new Error('broken');

  it('comes after what was received before it, also if that waited for its turn', async () => {
    const { answer, reader } = begin(true);
    answer.onData(Buffer.from('last event'));
    answer.onError(broken);
    expect(reader.got).toEqual([]);
    await nextTurn();
    await nextTurn();
    expect(reader.got).toEqual(['last event', 'broken']);
  });

  it('waits until a slow reader asks for more, and comes once', async () => {
    const { answer, reader } = begin(false);
    answer.onData(Buffer.from('first part'));
    await nextTurn();
    answer.onData(Buffer.from('last event'));
    answer.onError(broken);
    await nextTurn();
    expect(reader.got).toEqual(['first part']);
    for (let i = 0; i < 3; i++) {
      reader.wantMore();
      await nextTurn();
      await nextTurn();
    }
    expect(reader.got).toEqual(['first part', 'last event', 'broken']);
  });

  it('comes at once if nothing was received before it', () => {
    const { answer, reader } = begin(true);
    answer.onError(broken);
    expect(reader.got).toEqual(['broken']);
  });
});
