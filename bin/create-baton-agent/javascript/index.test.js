import { runExecutor } from '@baton/agent';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import greeter from './index.js';

test('greets by name', async () => {
  const { text } = await runExecutor(greeter, 'Ada');
  assert.equal(text, 'Hello, Ada!');
});
