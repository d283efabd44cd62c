import type { EventPayload, Part } from '@baton/a2a';
import { assertSize } from './assert-size.js';

describe('the size of an event before it becomes JSON', () => {
  const MAX = 10;
  const isLarger = 'The agent sent an event of more than 10 bytes';
  const part = (content: Part['content']): Part => ({
    content,
    metadata: undefined,
    filename: '',
    mediaType: '',
  });
  const events = (parts: Part[]): EventPayload[] => [
    {
      $case: 'artifactUpdate',
      value: { artifact: { parts } },
    } as unknown as EventPayload,
    {
      $case: 'statusUpdate',
      value: { status: { message: { parts } } },
    } as unknown as EventPayload,
  ];

  it('is that of the texts and files of its artifact or message', () => {
    const fits = [
      part({ $case: 'text', value: 'ä'.repeat(3) }),
      part({ $case: 'raw', value: Buffer.alloc(4) }),
    ];
    for (const payload of events(fits)) expect(() => assertSize(payload, MAX)).not.toThrow();
    const parts = [...fits, part({ $case: 'text', value: '!' })];
    for (const payload of events(parts)) expect(() => assertSize(payload, MAX)).toThrow(isLarger);
  });
});
