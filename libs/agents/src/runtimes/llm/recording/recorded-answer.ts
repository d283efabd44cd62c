import type { AnswerPart } from '../answer-calls.js';
import type { CallRecordDetail } from './call-record-detail.js';
import { MAX_SECTION_BYTES } from './bounded-json.js';

/** Maximum tool calls that are recorded of one answer. */
const MAX_CALLS = 128;

/** The answer of a model in one try of a call, also if it broke off. It stays small, however long the answer is. */
export class RecordedAnswer {
  text = '';
  reasoning = '';
  /** As the model wrote them: the text of an input need not be JSON. */
  readonly calls: CallRecordDetail['said']['calls'] = [];
  /** The provider's id of the answer, and its name of the model. */
  response: CallRecordDetail['said']['response'] = null;
  /** Characters that are not recorded. */
  left = 0;
  private room = MAX_SECTION_BYTES;

  addPart(part: AnswerPart): void {
    switch (part.type) {
      case 'text-delta':
        this.text += this.fit(part.text);
        break;
      case 'reasoning-delta':
        this.reasoning += this.fit(part.text);
        break;
      case 'tool-input-start':
        this.begin(part.id, part.toolName);
        break;
      case 'tool-input-delta':
        this.write(part.id, part.delta);
        break;
      case 'tool-call':
        this.complete(part.toolCallId, part.toolName, part.input);
        break;
      case 'finish-step': {
        const { id, modelId } = part.response;
        // The AI SDK makes an id if the provider gives none.
        this.response = {
          ...(!id.startsWith('aitxt-') && { id: id.slice(0, 200) }),
          model: modelId.slice(0, 200),
        };
        break;
      }
    }
  }

  private begin(id: string, tool: string): void {
    if (this.calls.length < MAX_CALLS) this.calls.push({ id: this.fit(id), tool: this.fit(tool), input: '' });
  }

  private write(id: string, delta: string): void {
    const call = this.calls.findLast((each) => each.id === id);
    if (call) call.input += this.fit(delta);
  }

  /** A call whose input came in pieces is there already. */
  private complete(id: string, tool: string, input: unknown): void {
    const call = this.calls.findLast((each) => each.id === id);
    if (call && call.input !== '') return;
    if (!call) this.begin(id, tool);
    this.write(id, typeof input === 'string' ? input : JSON.stringify(input ?? null));
  }

  private fit(text: string): string {
    const taken = text.slice(0, this.room);
    this.room -= taken.length;
    this.left += text.length - taken.length;
    return taken;
  }
}
