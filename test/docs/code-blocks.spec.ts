import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pagesIn } from './pages.js';

const ROOT = join(__dirname, '../..');

// The site colours code by its language. `text` is a language, too.
it.each(pagesIn('docs', 'examples'))('%s: each block of code names its language', (page) => {
  const fences = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^ *```(.*)$/gm)].map(
    ([, name]) => name,
  );
  // Every second fence ends a block.
  expect(fences.filter((name, i) => i % 2 === 0 && name === '').length).toBe(0);
  expect(fences.filter((name, i) => i % 2 === 1 && name !== '')).toEqual([]);
});
