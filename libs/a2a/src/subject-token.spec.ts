import { inspect } from 'node:util';
import { SubjectToken } from './subject-token.js';

it('is shown by nothing but a call', () => {
  const token = new SubjectToken('https://id.example.com', 'sesame');
  const shown = [
    JSON.stringify({ token }),
    inspect({ token }, { depth: 9, showHidden: true }),
    JSON.stringify(structuredClone({ token })),
  ];
  expect(shown.join()).not.toContain('sesame');
  expect(token.reveal()).toBe('sesame');
});
