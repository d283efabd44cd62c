import { OutboundRefused } from './outbound-refused.js';

const EVENT_END = /\r\n\r\n|\n\n|\r\r/g;

/**
 * Passes a body on until it gets too large, then fails with OutboundRefused. A stream of events may go on for as
 * long as it likes: there the limit holds for each event.
 *
 * @param host named in the error
 */
export function limitedBody(maxBytes: number, isEventStream: boolean, host: string): TransformStream {
  let size = 0;
  let tail = '';
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      size += chunk.byteLength;
      if (isEventStream) {
        // One byte is one character: only line ends are looked for. An event may end between two chunks.
        const text = tail + Buffer.from(chunk).toString('latin1');
        const end = [...text.matchAll(EVENT_END)].at(-1);
        if (end) size = text.length - end.index - end[0].length;
        tail = end ? text.slice(end.index + end[0].length).slice(-3) : text.slice(-3);
      }
      if (size > maxBytes) {
        const what = isEventStream ? 'an event' : 'an answer';
        controller.error(new OutboundRefused(`"${host}" sent ${what} of more than ${maxBytes} bytes`));
      } else controller.enqueue(chunk);
    },
  });
}
