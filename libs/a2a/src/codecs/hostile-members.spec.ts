import { ProtocolError } from '../protocol-error.js';
import { SPEC_PROFILE } from '../profiles/spec.js';
import { readPart } from './params.js';
import { Fields } from './fields.js';

describe('what callers invent', () => {
  it('is found under both names, and nothing of it is kept', () => {
    const fields = Fields.ofParams({ history_length: 3, contextId: 'c' });
    expect(fields.historyLength()).toBe(3);
    expect(fields.contextId()).toBe('c');
    const grown = keptAfter(() => {
      for (let i = 0; i < 20_000; i++) {
        const name = `member${String(i)}${'A'.repeat(500)}`;
        Fields.ofParams({ [name]: 'x' }).string(name);
      }
    });
    // The names alone are 10 MB, those with underscores 20.
    expect(grown).toBeLessThan(5_000_000);
  });

  it.each([
    ['padding and nothing else', '='.repeat(4_000_000)],
    ['padding before the end', `${'='.repeat(4_000_000)}A`],
    ['padding in between', `AAAA${'='.repeat(4_000_000)}AAAA`],
    ['three characters of padding', 'A==='],
    ['half a byte', 'AAAAA'],
  ])('is no base64: %s', (_what, raw) => {
    expect(() => readPart({ raw }, 'part')).toThrow(/must be base64/);
  });

  it.each([
    ['AA==', 1],
    ['AAA=', 2],
    ['AAA', 2],
    ['', 0],
  ])('is base64: %j', (raw, bytes) => {
    expect(readPart({ raw }, 'part').content?.value).toHaveLength(bytes);
  });

  it('may be as deep as the limit, in every method of every family', () => {
    let deep: unknown = 'x';
    for (let i = 0; i < 190; i++) deep = i % 2 ? [deep] : { deep };
    for (const codec of new Set(['SendMessage', 'message/send'].map((m) => SPEC_PROFILE.codecFor(m)!))) {
      for (const method of codec.methods) {
        const message = {
          messageId: 'm',
          role: method.includes('/') ? 'user' : 'ROLE_USER',
          parts: [{ data: { deep }, metadata: { deep } }],
          metadata: { deep },
        };
        const decode = () => codec.decode(method, { id: 't', message, metadata: { deep }, deep });
        const outcome = (): unknown => {
          try {
            return decode();
          } catch (error) {
            return error instanceof ProtocolError ? 'refused' : error;
          }
        };
        expect(outcome()).not.toBeInstanceOf(Error);
      }
    }
  });
});

/** Bytes of heap that are still held after `work`. */
function keptAfter(work: () => void): number {
  const collect = (globalThis as { gc?: () => void }).gc ?? exposedGc();
  collect();
  const before = process.memoryUsage().heapUsed;
  work();
  collect();
  return process.memoryUsage().heapUsed - before;
}

function exposedGc(): () => void {
  // oxlint-disable-next-line typescript/no-require-imports
  const [v8, vm] = [require('node:v8'), require('node:vm')] as [
    typeof import('node:v8'),
    typeof import('node:vm'),
  ];
  v8.setFlagsFromString('--expose-gc');
  return vm.runInNewContext('gc') as () => void;
}
